"""Files below the caller's file roots."""
