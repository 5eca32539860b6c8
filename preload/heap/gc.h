/* Collections of the Boehm collector (Guile, w3m, Inkscape, …), as GC and stop-the-world ranges. */
#pragma once

/* Constructor: asks the collector, if the program has one, to tell us. */
void gt_gc_init(void);
