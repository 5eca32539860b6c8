/* Which package of the distribution a file is of: dpkg or rpm is asked. */
#pragma once

/* The package's name, valid until the next call; "": not known, or the file is not on this machine.
 */
const char *gt_package_of(const char *path);
