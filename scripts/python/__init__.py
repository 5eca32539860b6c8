"""Records and explains what the threads of a program wait for: `python -m gotrace SCRIPT`, or the command `gotrace`."""
