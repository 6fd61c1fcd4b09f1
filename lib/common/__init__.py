"""What several parts share: checks of arguments."""
