"""What operating systems do differently, behind one interface: one module for each system.

linux     the kernel's files in ``/proc``, control groups, adoption of orphans
macos     ``ps`` and ``vm_stat`` in their place
posix     what both share: users, locks, limits of processes
windows   no users or limits of POSIX; jobs do not run there

Nothing else in the package imports ``fcntl``, ``grp``, ``pwd``, ``resource``, ``termios`` or ``pty`` when it is
loaded, except what only ``run`` and Linux's namespaces load. The standard library is enough: the guard of a job runs
without anything else.
"""

from __future__ import annotations

import sys

from epochzero.platform.model import ProcessStatus, ResourceLimits, SystemUser

if sys.platform == "win32":
    from epochzero.platform.windows import (
        ADOPTS_ORPHANS,
        BINARY,
        DIRECTORY,
        NAME,
        NO_FOLLOW,
        NON_BLOCKING,
        WHY_NO_JOBS,
        adopt_orphans,
        is_private,
        limit_process,
        lock,
        memory_available,
        name_of,
        open_files,
        pipe,
        process_status,
        processes,
        raise_open_files,
        resource_limits,
        unlock,
        usable_cpus,
        user,
        user_id,
    )
else:
    from epochzero.platform.posix import (
        BINARY,
        DIRECTORY,
        NO_FOLLOW,
        NON_BLOCKING,
        WHY_NO_JOBS,
        is_private,
        limit_process,
        lock,
        open_files,
        pipe,
        raise_open_files,
        resource_limits,
        unlock,
        user,
        user_id,
    )

    if sys.platform == "darwin":
        from epochzero.platform.macos import (
            ADOPTS_ORPHANS,
            NAME,
            adopt_orphans,
            memory_available,
            name_of,
            process_status,
            processes,
            usable_cpus,
        )
    else:
        from epochzero.platform.linux import (
            ADOPTS_ORPHANS,
            NAME,
            adopt_orphans,
            memory_available,
            name_of,
            process_status,
            processes,
            usable_cpus,
        )
