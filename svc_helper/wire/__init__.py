"""The wire format between app, helper and agent."""
