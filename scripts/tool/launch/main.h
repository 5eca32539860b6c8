/* The table of commands. */
#pragma once

/* The command most similar to a word that is no program; NULL: none is similar. */
const char *gt_command_meant(const char *typed);
