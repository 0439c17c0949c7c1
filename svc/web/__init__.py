"""The HTTP interface: authentication, access rules, validation and responses; the domain decides the rest."""
