"""The images screen before the installed service: what its buttons and its lines do to the store."""

from __future__ import annotations

from e2e.installation import Call
from e2e.surroundings import must
from pages.chromium import Driver, complaints, find, press, says, until
from stories.test_composer import sign_in

ROW = "[data-list] tbody tr"


def test_pull_remove_and_prune(at_sign_in: Driver, origin: str, svc: Call) -> None:
    """Each as the command line has it too, and by the line that its button shows."""
    driver = at_sign_in
    svc("image", "delete", "base", "--yes")
    sign_in(driver)
    driver.get(f"{origin}/images")
    says(driver, "Not in your store", ROW)
    press(driver, f"{ROW} [data-key=get]")
    says(driver, "Unused", ROW)
    assert must(svc("image", "status", "base", "--json")).json()["status"] == "ready"
    assert must(svc("image", "overview", "--json")).json()["items"][0]["names"][0] in find(driver, ROW).text

    command = find(driver, f"{ROW} [data-key=remove]").get_attribute("data-cmd")
    assert command == "svc image delete base --yes"
    press(driver, f"{ROW} [data-key=remove]")
    press(driver, "dialog[open] button[value=confirm]")
    says(driver, "Not in your store", ROW)
    assert must(svc("image", "overview", "--json")).json()["items"] == []

    command = str(find(driver, f"{ROW} [data-key=get]").get_attribute("data-cmd"))
    must(svc(*command.split()[1:]))
    says(driver, "Unused", ROW)  # nobody reloads the page
    press(driver, "[data-key=prune]")
    press(driver, "dialog[open] button[value=confirm]")
    says(driver, "Not in your store", ROW)
    assert must(svc("image", "overview", "--json")).json()["items"] == []

    must(svc("ws", "setup", "--template", "base", "--name", "needs-it"))
    try:
        says(driver, "needs-it", ROW)
        says(driver, "Ready", ROW)
        until(driver, lambda: not driver.find_elements("css selector", f"{ROW} button"), "no button")
    finally:
        must(svc("ws", "delete", "needs-it", "--yes"))
    assert not complaints(driver)
