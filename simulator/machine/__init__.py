"""Execution of a program by two engines that agree bit for bit, random numbers, and recording."""
