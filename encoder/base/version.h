/* The version of libgotrace and of `gotrace`: that of the newest entry in scripts/CHANGELOG.md. */
#pragma once

extern const char gt_version[];
