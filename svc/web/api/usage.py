"""What is used, what is free, what the host has."""

from __future__ import annotations

from flask import Blueprint

from svc.web.access import ACCOUNT, MEMBER, Access, reserve

blueprint = Blueprint("usage", __name__)

reserve(blueprint, "GET", "/usage/me", Access(ACCOUNT, pat=True), "The caller's usage")
reserve(blueprint, "GET", "/servers/hardware", Access(ACCOUNT, pat=True), "The host's GPUs")
reserve(blueprint, "GET", "/workspaces/capacity", Access(MEMBER, pat=True), "Quota and free headroom")
reserve(blueprint, "POST", "/workspaces/recommend", Access(MEMBER, pat=True), "Recommended resources")
