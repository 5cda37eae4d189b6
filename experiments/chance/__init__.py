"""Tables with chance: the tasks, published methods as peers, and our learners, all judged alike."""
