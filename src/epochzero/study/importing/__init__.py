"""An export of a tracker's issues and a clone -> bug reports with their fixes, in the shared format.

issues (`issues`) x commits (`linking`) -> links -> what each fix changed (`fixes`) -> records
"""

from __future__ import annotations

from epochzero.study.importing.conversion import Imported, import_reports
