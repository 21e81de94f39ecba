"""Tables, figures and the page of a study, made from the committed files in ``reports/<study>/`` alone."""

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "data": ("ReportData", "load_report"),
        "errors": ("ReportError",),
        "figures": ("cd_diagram", "heatmap"),
        "all_pages": ("write_overview",),
        "paper_files": ("write_paper_files",),
        "readme": ("finding_text", "headline_markdown", "write_readme"),
        "sections": ("build_report",),
    },
)
