"""What does a change do to response times and capacity, and which line of it does how much?"""
