/* C++'s operators new and delete. */
#pragma once

/* Finds them. Called once the allocator is known. Puts the names of those that need not be counted,
 * which the caller hides, into `hide`, and returns their number. */
int gt_operators_resolve(const char **hide);
