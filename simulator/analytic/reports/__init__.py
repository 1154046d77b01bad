"""What does an estimate say, and what is doubtful about it?"""
