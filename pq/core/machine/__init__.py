"""Machine code: how functions are compiled and kept, and kernels of the core."""
