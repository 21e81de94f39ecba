"""Audit of published multi-label tables: arithmetic, conventions, ranks and repetitions, without any study or paper."""

from __future__ import annotations

from multilab.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "auditing": ("as_json", "audit_table", "report_lines", "summary_line"),
        "findings": ("AUDIT_CHECKS", "AuditError", "AuditFinding", "audit_check"),
        "granularity": ("on_grid",),
        "numbers": ("PrintedNumber", "parse_number"),
        "quantities": ("quantity_of",),
        "printed_table": (
            *("DERIVED_KINDS", "AuditCell", "AuditTable", "TestSize", "derived_kind"),
            *("read_audit_cells", "read_sizes", "size_from", "unused_sizes"),
        ),
    },
)
