"""What searches over edge orders share: budget, objective, intervals, moves."""
