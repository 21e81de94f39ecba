"use strict";
// Sorting, filtering, choice of a table, and the picker of the arena's pages. No library, nothing is loaded; without
// this script all tables are shown one below the other.
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

  // ---- filtering -----------------------------------------------------------------------------------------------------

  function makeFilter(bar) {
    const scope = document.getElementById(bar.dataset.scope);
    const fields = Object.fromEntries(all("[name]", bar).map((field) => [field.name, field]));
    const status = bar.querySelector("[role=status]");
    const column = (table, name) => Array.from(table.tHead.rows[0].cells).findIndex((head) => head.dataset.filter === name);
    const matches = (row, at) => {
      const is = (name) => !fields[name] || !fields[name].value || plain(row.cells[at[name]]) === fields[name].value;
      const seconds = plain(row.cells[at.seconds]);
      const limit = fields.seconds.value;
      return (
        row.cells[0].textContent.toLowerCase().includes(fields.text.value.trim().toLowerCase()) &&
        is("family") && is("track") && is("licence") &&
        (!limit || (!missing(seconds) && Number(seconds) <= Number(limit)))
      );
    };
    const apply = () => {
      const tables = all("table.filtered", scope);
      tables.forEach((table) => {
        const at = Object.fromEntries(["family", "track", "licence", "seconds"].map((name) => [name, column(table, name)]));
        Array.from(table.tBodies[0].rows).forEach((row) => { row.hidden = !matches(row, at); });
      });
      const shown = tables.find((table) => table.offsetParent !== null);
      const rows = shown ? Array.from(shown.tBodies[0].rows) : [];
      status.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} methods shown.`;
    };
    bar.addEventListener("input", apply);
    bar.querySelector("button").addEventListener("click", () => {
      Object.values(fields).forEach((field) => { field.value = ""; });
      apply();
    });
    scope.addEventListener("arena:changed", apply);
    bar.hidden = false;
    apply();
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
      scope.dispatchEvent(new Event("arena:changed"));
    };
    bar.addEventListener("input", apply);
    bar.hidden = false;
    apply();
  }

  // ---- data like mine ------------------------------------------------------------------------------------------------

  const NUMBERS = ["rows", "features", "labels", "cardinality", "density"];

  const GIVEN = ["rows", "features", "labels"]; // the others may be left out

  // Natural logarithms of the five numbers, and 1 for text, 0 else; NaN for what is not given.
  const coordinates = (profile) => [
    ...NUMBERS.map((name) => (profile[name] === null ? NaN : Math.log(profile[name]))),
    profile.text === null ? NaN : profile.text ? 1 : 0,
  ];

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
    const terms = scales.map((scale, j) => (scale > 1e-12 && !Number.isNaN(x[j]) ? ((x[j] - y[j]) / scale) ** 2 : 0));
    return Math.round(1e9 * Math.sqrt(terms.reduce((sum, term) => sum + term, 0))) / 1e9;
  }

  function nearest(profile, sets, k, from = sets.map((_, index) => index)) {
    const scales = scalesOf(sets);
    const rows = from.map((index) => ({ index, name: sets[index].name, distance: distance(profile, sets[index], scales) }));
    rows.sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    return rows.slice(0, k);
  }

  // Ranks from 1, the best first; equal values share their mean rank, and those without a value the last.
  function ranksOf(values, direction) {
    const keys = values.map((value) => (value === null ? Infinity : direction === "max" ? -value : value));
    const ordered = [...keys].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    return keys.map((key) => ordered.indexOf(key) + (ordered.lastIndexOf(key) - ordered.indexOf(key)) / 2 + 1);
  }

  // As `multilab.arena.rank_methods`: on a set, the columns are ranked by the mean of their ranks by the metrics.
  function rankOnSets(data, pool, sets, group) {
    const means = (set, metric) => (pool.own[set] ? pool.own[set][metric] : pool.columns.map((at) => data.means[set][metric][at]));
    const defined = (set, metrics) => metrics.filter((metric) => !(pool.undefined[set] || []).includes(metric));
    const late = sets.map((set) => {
      const rows = defined(set, pool.metrics).map((metric) => means(set, metric));
      return pool.columns.map((_, i) => rows.some((row) => row[i] === null));
    });
    const metrics = group.filter((metric) => pool.metrics.includes(metric));
    const perSet = sets.map((set) => {
      const ranks = defined(set, metrics).map((metric) => ranksOf(means(set, metric), data.metrics[metric].direction));
      return ranks.length ? pool.columns.map((_, i) => mean(ranks.map((rank) => rank[i]))) : null;
    }).filter((ranks) => ranks);
    if (!perSet.length) return [];
    const within = perSet.map((ranks) => ranksOf(ranks.map((rank) => Math.round(rank * 1e9) / 1e9), "min"));
    const k = pool.columns.length;
    const rows = pool.columns.map((method, i) => ({
      method,
      rank: mean(within.map((ranks) => ranks[i])),
      wins: k > 1 ? (k - mean(perSet.map((ranks) => ranks[i]))) / (k - 1) : 1,
      unfinished: late.filter((set) => set[i]).length,
    }));
    return rows.sort((a, b) => a.rank - b.rank || b.wins - a.wins);
  }

  function level(rows, pool, sets) {
    const critical = pool.critical / Math.sqrt(sets);
    const count = rows.filter((row) => row.rank - rows[0].rank <= critical).length;
    return `Critical difference of ranks ${critical.toFixed(2)} (Nemenyi, level 0.05): ` +
      (count > 1 ? `the first ${count} methods do not differ by it.` : "the first differs from all others.");
  }

  function median(values) {
    const ordered = [...values].sort((a, b) => a - b);
    const half = Math.floor(ordered.length / 2);
    return ordered.length % 2 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2;
  }

  const short = (value) => String(Number(Number(value).toPrecision(4)));

  function makePicker(section, data) {
    const form = section.querySelector("form");
    const field = Object.fromEntries(all("[name]", form).map((element) => [element.name, element]));
    const table = section.querySelector("table");
    const apart = median(data.sets.map((set) => nearest(set, data.sets, 2)[1]?.distance ?? 0));

    const fill = (set) => {
      NUMBERS.forEach((name) => { field[name].value = short(set[name]); });
      field.text.value = String(set.text);
    };
    const profile = () => ({
      ...Object.fromEntries(NUMBERS.map((name) => [name, field[name].value === "" ? null : Number(field[name].value)])),
      text: field.text.value === "" ? null : field.text.value === "true",
    });
    const cell = (tag, text, value) => {
      const element = document.createElement(tag);
      element.textContent = text;
      if (value !== undefined) element.dataset.v = value;
      return element;
    };

    // A dagger where results on one of the sets decided rules of the method.
    const titleOn = (method, sets) => method.title + (method.chosen.some((set) => sets.includes(set)) ? " †" : "");

    function fillTable(rows, sets) {
      table.tBodies[0].replaceChildren(...rows.map((row) => {
        const method = data.methods[row.method];
        const line = document.createElement("tr");
        const head = cell("th", titleOn(method, sets));
        head.scope = "row";
        const texts = ["family", "track", "licence"].map((name) => cell("td", method[name]));
        texts.forEach((element) => element.classList.add("left"));
        line.append(
          head, cell("td", row.rank.toFixed(2), row.rank), cell("td", (100 * row.wins).toFixed(1), row.wins),
          cell("td", row.unfinished), ...method.costs.map((cost) => cell("td", cost.text, cost.value)), ...texts,
        );
        return line;
      }));
      Array.from(table.tHead.rows[0].cells).forEach((head, i) => head.setAttribute("aria-sort", i === 1 ? "ascending" : "none"));
      section.dispatchEvent(new Event("arena:changed"));
    }

    function nearestLine(near) {
      const names = near.map((item) => `${item.name} (distance ${item.distance.toFixed(2)})`).join(", ");
      section.querySelector("#nearest").textContent = `Nearest sets: ${names}.` + (near[0].distance > 2 * apart
        ? ` No set of the arena is close: sets of the arena are ${apart.toFixed(2)} from their nearest neighbour at the median. Read the ranking with caution.`
        : "");
    }

    function refresh() {
      const given = profile();
      const bad = NUMBERS.filter((name) =>
        given[name] === null ? GIVEN.includes(name) : !(given[name] > 0 && Number.isFinite(given[name])));
      NUMBERS.forEach((name) => field[name].setAttribute("aria-invalid", String(bad.includes(name))));
      const status = section.querySelector("#like-status");
      status.textContent = "";
      if (bad.length) {
        status.textContent = `Enter a number above 0 for: ${bad.join(", ")}.`;
        return;
      }
      if (given.cardinality > given.labels) {
        status.textContent = "Labels per row cannot exceed the number of labels.";
        return;
      }
      const pool = data.pools[field.track.value];
      const near = nearest(given, data.sets, Number(field.sets.value), pool.sets);
      const group = data.groups[field.metrics.value];
      const chosen = near.map((item) => item.index);
      const rows = rankOnSets(data, pool, chosen, group);
      nearestLine(near);
      fillTable(rows, chosen);
      section.querySelector("#like-macro").hidden = field.metrics.value !== "macro_f1";
      status.textContent = rows.length
        ? `${rows.length} methods ranked on ${near.length} ${near.length > 1 ? "sets" : "set"}. ` +
          `First: ${titleOn(data.methods[rows[0].method], chosen)}, mean rank ${rows[0].rank.toFixed(2)}. ${level(rows, pool, near.length)}`
        : "These metrics are not defined on these sets: choose more sets or other metrics.";
      const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
      const query = new URLSearchParams({ ...said, sets: field.sets.value, metrics: field.metrics.value, track: field.track.value });
      section.querySelector("#like-link").href = `#like?${query}`;
    }

    function readFragment() {
      const [name, text] = location.hash.slice(1).split("?");
      if (name !== "like" || !text) return false;
      const query = new URLSearchParams(text);
      query.forEach((value, key) => {
        if (!field[key] || key === "like") return;
        if (field[key].tagName !== "SELECT" || all("option", field[key]).some((o) => o.value === value)) field[key].value = value;
      });
      field.like.value = "";
      section.scrollIntoView();
      return true;
    }

    form.addEventListener("input", (event) => {
      const { name } = event.target;
      const q = Number(field.labels.value);
      const blank = field.cardinality.value === "";
      if (name === "like" && field.like.value !== "") fill(data.sets[Number(field.like.value)]);
      else if (name === "density") field.cardinality.value = field.density.value && short(Number(field.density.value) * q);
      else if (name === "cardinality" || name === "labels") field.density.value = blank ? "" : short(Number(field.cardinality.value) / q);
      if (NUMBERS.includes(name)) field.like.value = "";
      refresh();
      try { history.replaceState(null, "", section.querySelector("#like-link").href); } catch { /* the link is on the page */ }
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    window.addEventListener("hashchange", () => { if (readFragment()) refresh(); });
    all(".scripted", section).forEach((element) => { element.hidden = false; });
    all(".unscripted", section).forEach((element) => { element.hidden = true; });
    makeSortable(table);
    GIVEN.forEach((name) => { field[name].value = short(data.sets[0][name]); });
    readFragment();
    refresh();
  }

  const block = document.getElementById("arena-data");
  all("table.sortable").forEach(makeSortable);
  all(".choice").forEach(makeChoice);
  const picker = document.getElementById("like");
  if (block && picker) makePicker(picker, JSON.parse(block.textContent));
  all(".filter").forEach(makeFilter);
})();
