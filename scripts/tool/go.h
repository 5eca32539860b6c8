/* Finds a Go on this machine that reads a trace. */
#pragma once

#include <limits.h>

enum { GT_GO_ANY = INT_MAX };

struct gt_go {
    int least, most; /* the N of the oldest and newest go1.N wanted; most: or GT_GO_ANY */
    char best[PATH_MAX];
    int minor;       /* of the best; 0: there is none */
    char seen[1024]; /* every Go that was found, for a message */
};

/* Looks in PATH and where Go is installed. Sets best, minor and seen. */
void gt_go_find(struct gt_go *go);

/* The same for the program at that path only. */
void gt_go_consider(struct gt_go *go, const char *path);
