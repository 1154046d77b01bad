"""What runs a program? Two engines that agree bit for bit, their random numbers, and what they write down."""
