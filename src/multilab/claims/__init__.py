"""What the papers print, as data."""

from multilab.claims.errors import ClaimsError
from multilab.claims.printed import papers, published

__all__ = ["ClaimsError", "papers", "published"]
