"""Events in the database: who acts, and how those hear of it who wait."""
