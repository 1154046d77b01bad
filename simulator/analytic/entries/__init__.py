"""What follows from the graph of an entry, given the times of its steps?"""
