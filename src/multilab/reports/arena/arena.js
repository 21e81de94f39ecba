"use strict";
// Sorting, choice of a table, and the picker of the arena's page. No library, nothing is loaded; without this script all
// tables are shown one below the other.
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  // ---- sorting -------------------------------------------------------------------------------------------------------

  const plain = (cell) => (cell.dataset.v !== undefined ? cell.dataset.v : cell.textContent.trim());
  const missing = (text) => text === "" || text === "–";

  function sortRows(table, index, descending) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows).map((row) => ({ row, text: plain(row.cells[index]) }));
    const numeric = rows.every(({ text }) => missing(text) || !Number.isNaN(Number(text)));
    const key = ({ text }) => (numeric ? Number(text) : text.toLowerCase());
    const sign = descending ? -1 : 1;
    rows.sort((a, b) => {
      if (missing(a.text) || missing(b.text)) return missing(a.text) - missing(b.text); // always last
      const [x, y] = [key(a), key(b)];
      return x < y ? -sign : x > y ? sign : 0;
    });
    rows.forEach(({ row }) => body.append(row));
    Array.from(table.tHead.rows[0].cells).forEach((head, i) => {
      if (head.hasAttribute("aria-sort")) {
        head.setAttribute("aria-sort", i !== index ? "none" : descending ? "descending" : "ascending");
      }
    });
  }

  function makeSortable(table) {
    Array.from(table.tHead.rows[0].cells).forEach((head, index) => {
      if (head.dataset.nosort !== undefined) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      if (!head.hasAttribute("aria-sort")) head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const first = head.dataset.first === "descending";
        sortRows(table, index, before === "none" ? first : before === "ascending");
      });
    });
  }

  // ---- one of several tables -----------------------------------------------------------------------------------------

  function makeChoice(bar) {
    const scope = document.getElementById(bar.dataset.scope);
    const panels = all(".panel", scope);
    const selects = all("select", bar);
    const apply = () => {
      panels.forEach((panel) => { panel.hidden = !selects.every((select) => panel.dataset[select.name] === select.value); });
      bar.querySelector("[role=status]").textContent = panels.every((panel) => panel.hidden)
        ? "There are no results for this choice." : "";
    };
    bar.addEventListener("input", apply);
    bar.hidden = false;
    apply();
  }

  // ---- data like mine ------------------------------------------------------------------------------------------------

  const NUMBERS = ["rows", "features", "labels"];
  const NEAREST = 5;

  const coordinates = (profile) => NUMBERS.map((name) => Math.log(profile[name]));

  function scalesOf(sets) {
    const points = sets.map(coordinates);
    return points[0].map((_, j) => {
      const column = points.map((point) => point[j]);
      const centre = mean(column);
      return Math.sqrt(mean(column.map((value) => (value - centre) ** 2)));
    });
  }

  function distance(a, b, scales) {
    const [x, y] = [coordinates(a), coordinates(b)];
    const terms = scales.map((scale, j) => (scale > 1e-12 ? ((x[j] - y[j]) / scale) ** 2 : 0));
    return Math.round(1e9 * Math.sqrt(terms.reduce((sum, term) => sum + term, 0))) / 1e9;
  }

  function nearest(profile, sets, k) {
    const scales = scalesOf(sets);
    const rows = sets.map((set, index) => ({ index, name: set.name, distance: distance(profile, set, scales) }));
    rows.sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    return rows.slice(0, k);
  }

  // As `multilab.arena.rank_methods` on these sets: the mean of the ranks on each.
  function rankOnSets(data, sets) {
    const rows = data.methods.map((method, i) => ({
      method,
      rank: mean(sets.map((set) => data.ranks[set][i])),
      unfinished: sets.filter((set) => data.late[set][i]).length,
    }));
    return rows.sort((a, b) => a.rank - b.rank);
  }

  function level(rows, critical) {
    const count = rows.filter((row) => row.rank - rows[0].rank <= critical).length;
    return `Critical difference of ranks ${critical.toFixed(2)} (Nemenyi, level 0.05): ` +
      (count > 1 ? `the first ${count} methods do not differ by it.` : "the first differs from all others.");
  }

  function median(values) {
    const ordered = [...values].sort((a, b) => a - b);
    const half = Math.floor(ordered.length / 2);
    return ordered.length % 2 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2;
  }

  function makePicker(section, data) {
    const form = section.querySelector("form");
    const field = Object.fromEntries(NUMBERS.map((name) => [name, form.querySelector(`[name=${name}]`)]));
    const table = section.querySelector("table");
    const link = section.querySelector("#like-link");
    const apart = median(data.sets.map((set) => nearest(set, data.sets, 2)[1]?.distance ?? 0));

    const cell = (tag, text, value) => {
      const element = document.createElement(tag);
      element.textContent = text;
      if (value !== undefined) element.dataset.v = value;
      return element;
    };

    // A dagger where results on one of the sets decided rules of the method.
    const titleOn = (method, sets) => method.title + (method.chosen.some((set) => sets.includes(set)) ? " †" : "");

    function fillTable(rows, sets) {
      table.tBodies[0].replaceChildren(...rows.map(({ method, rank, unfinished }) => {
        const line = document.createElement("tr");
        const head = cell("th", titleOn(method, sets));
        head.scope = "row";
        line.append(head, cell("td", rank.toFixed(2), rank), cell("td", unfinished),
          ...method.costs.map((cost) => cell("td", cost.text, cost.value)));
        return line;
      }));
      Array.from(table.tHead.rows[0].cells).forEach((head, i) => head.setAttribute("aria-sort", i === 1 ? "ascending" : "none"));
    }

    function nearestLine(near) {
      const names = near.map((item) => `${item.name} (distance ${item.distance.toFixed(2)})`).join(", ");
      section.querySelector("#nearest").textContent = `Nearest sets: ${names}.` + (near[0].distance > 2 * apart
        ? ` No set of the arena is close: sets of the arena are ${apart.toFixed(2)} from their nearest neighbour at the median. Read the ranking with caution.`
        : "");
    }

    function refresh() {
      const given = Object.fromEntries(NUMBERS.map((name) => [name, Number(field[name].value)]));
      const bad = NUMBERS.filter((name) => !(given[name] > 0 && Number.isFinite(given[name])));
      NUMBERS.forEach((name) => field[name].setAttribute("aria-invalid", String(bad.includes(name))));
      const status = section.querySelector("#like-status");
      if (bad.length) {
        status.textContent = `Enter a number above 0 for: ${bad.join(", ")}.`;
        return;
      }
      const near = nearest(given, data.sets, NEAREST);
      const chosen = near.map((item) => item.index);
      const rows = rankOnSets(data, chosen);
      nearestLine(near);
      fillTable(rows, chosen);
      status.textContent = `First: ${titleOn(rows[0].method, chosen)}, mean rank ${rows[0].rank.toFixed(2)} of ${rows.length}. ` +
        level(rows, data.critical / Math.sqrt(near.length));
      link.href = `#like?${new URLSearchParams(given)}`;
    }

    function readFragment() {
      const [name, text] = location.hash.slice(1).split("?");
      if (name !== "like" || !text) return false;
      new URLSearchParams(text).forEach((value, key) => { if (field[key]) field[key].value = value; });
      section.scrollIntoView();
      return true;
    }

    form.addEventListener("input", () => {
      refresh();
      try { history.replaceState(null, "", link.href); } catch { /* the link is on the page */ }
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    window.addEventListener("hashchange", () => { if (readFragment()) refresh(); });
    all(".scripted", section).forEach((element) => { element.hidden = false; });
    all(".unscripted", section).forEach((element) => { element.hidden = true; });
    makeSortable(table);
    NUMBERS.forEach((name) => { field[name].value = data.sets[0][name]; });
    readFragment();
    refresh();
  }

  all("table.sortable").forEach(makeSortable);
  all(".choice").forEach(makeChoice);
  makePicker(document.getElementById("like"), JSON.parse(document.getElementById("arena-data").textContent));
})();
