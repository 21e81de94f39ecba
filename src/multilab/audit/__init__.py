"""Audit of published multi-label tables: arithmetic, conventions, ranks, repetitions; knows no study and no paper."""

from __future__ import annotations

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "auditing": ("as_json", "audit_table", "report_lines", "summary_line"),
        "errors": ("AuditError",),
        "granularity": ("on_grid",),
        "numbers": ("PrintedNumber", "parse_number"),
        "quantities": ("quantity_of",),
        "reading": ("read_audit_cells", "read_sizes", "size_from", "unused_sizes"),
        "registry": ("AUDIT_CHECKS", "AuditFinding", "audit_check"),
        "tables": ("DERIVED_KINDS", "AuditCell", "AuditTable", "TestSize", "derived_kind"),
    },
)
