// How the search of the site orders its results: tasks before reference, decision records and lists of files last. The
// numbers below `score` are Sphinx's own; pages of equal score would be sorted by title.
var Scorer = {
  score: ([page, , , , score]) => {
    if (/^(decisions|architecture)\/|files$|^dependencies/.test(page)) return score - 20;
    if (/^(guide\/own-data|guide\/first-model|getting-started)/.test(page)) return score + 10;
    if (/^arena|^guide\/(audit|studies|dvc|tracking|conventions)/.test(page)) return score + 4;
    if (/^(guide|gallery)\//.test(page)) return score + 8;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
