"""The audit: who did what to what. Others add rows and count by `audit`, nobody else writes them."""
