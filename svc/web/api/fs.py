"""File roots; root has none, and tokens do not reach them."""

from __future__ import annotations

from flask import Blueprint

from svc.web.access import MEMBER, Access, reserve

blueprint = Blueprint("fs", __name__)

OWN = Access(MEMBER)

reserve(blueprint, "GET", "/fs/roots", OWN, "The file roots")
reserve(blueprint, "GET", "/fs/<root>/list", OWN, "Listing a directory")
reserve(blueprint, "GET", "/fs/<root>/read", OWN, "Reading a file")
reserve(blueprint, "GET", "/fs/<root>/download", OWN, "Downloading a file")
reserve(blueprint, "GET", "/fs/<root>/archive", OWN, "Archiving a directory")
reserve(blueprint, "PUT", "/fs/<root>/file", OWN, "Uploading a file")
reserve(blueprint, "POST", "/fs/<root>/mkdir", OWN, "Making a directory")
reserve(blueprint, "POST", "/fs/<root>/move", OWN, "Moving a file")
reserve(blueprint, "DELETE", "/fs/<root>/file", OWN, "Removing a file")
