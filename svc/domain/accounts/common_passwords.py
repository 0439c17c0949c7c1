"""Common passwords that zxcvbn's lists lack: other languages, other keyboards, technical terms.

In lower case, the most likely first; the checks remove digits, years, signs and
look-alike letters around them.
"""

from __future__ import annotations

_COMMON = """
passwort motdepasse contraseña contrasena senha parola haslo hasło heslo wachtwoord lösenord losenord
salasana jelszo jelszó пароль 密码 パスワード şifre sifre kennwort geheim hallo schatz sommer
winter herbst frühling fruehling fussball fußball servus passphrase bonjour soleil azerty azertyuiop qwertz
qwertzui hejsan привет любовь наташа йцукен ubuntu debian postgres superuser sysadmin administrator toor
rootroot changeit letmein welcome testtest demodemo insecure supervisor docker podman container kubernetes
jupyter notebook correcthorsebattery correcthorsebatterystaple trustnoone iloveyou raspberry
tensorflow pytorch
"""
COMMON = tuple(_COMMON.split())

KEYBOARD_ROWS = (
    "1234567890",
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "qwertzuiopü",
    "asdfghjklöä",
    "yxcvbnm",
    "azertyuiop",
    "qsdfghjklm",
    "wxcvbn",
    "йцукенгшщзхъ",
    "фывапролджэ",
    "ячсмитьбю",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
    "1q2w3e4r5t6y7u8i9o0p",
)
# The digit keys with Shift: unshifted, !QAZ2wsx is a run like any other.
UNSHIFT = str.maketrans("!@#$%^&*()", "1234567890")
