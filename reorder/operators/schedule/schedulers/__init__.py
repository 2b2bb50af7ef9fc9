"""The scheduling methods: reorder.operators.schedule.base says what a member is."""
