"""The process that a run lives in: threads, memory, signals, time, hardware."""
