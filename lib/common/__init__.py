"""What several parts share: checks of arguments, random streams, small statistics and linear algebra."""
