"""The most common passwords and the rows of the keyboards they are typed along.

Words are kept bare and in lower case: the checks take digits, years, signs and
look-alike letters (p@ssw0rd) off before they look here.
"""

from __future__ import annotations

_WORDS = """
000000 00000000 111111 11111111 112233 11223344 1122334455 121212 12121212 123 123123 123123123 123321
1234 12345 123456 1234567 12345678 123456789 1234567890 131313 147258369 159357 159753 1q2w3e 1q2w3e4r
1q2w3e4r5t 1qaz2wsx 222222 314159 31415926 31415926535 654321 666666 696969 777777 7777777 87654321
88888888 987654321 999999 a123456789 a1b2c3d4 aa123456 abc abc123 abcd access account adam admin
adminadmin administrator alex alexander alexis alice amanda amber america andrea andrew angel angela
angels animal anthony apple april arsenal asdf asdfgh ashley asshole august austin autumn awesome babe
baby babygirl bailey banana barbara baseball basketball batman beautiful benjamin berlin biteme blink
blizzard blossom bond bonnie booboo boomer boston brandon brandy bubbles buddy bullshit buster butterfly
california camaro cameron canada captain carlos casper catherine change changeit changeme charlie
charlotte cheese chelsea cherry chester chicago chicken chocolate chris christian christine christmas
christopher claire classic cobra coffee compaq computer contest cookie cooper correcthorsebattery
correcthorsebatterystaple corvette cowboy cowboys crystal dakota dallas daniel danielle database david
death december default demo demodemo dennis denver destiny diablo diamond doctor dolphin domain donald
dragon eagle eagles edward elephant elizabeth emily eminem engineer enter extreme falcon family fantasy
february ferrari fish fishing florida flower flowers fluffy football forever formula france frank freddy
freedom friday friend friends fuckme fuckoff fuckyou gandalf garfield gateway gemini genesis george
germany ghost giants ginger gizmo golden goldfish golf google gordon grandma great green guest guitar
hacker hallo hammer hannah happy harley harry hash heather hello hellokitty help helpme hercules hockey
hollywood home honda honey horse hotdog hottie hunter iceman iloveu iloveyou iloveyoualways infinity
insecure internet island jackson jaguar jake james january jasmine jason jasper jennifer jessica jesus
john johnny johnson jonathan jordan joseph joshua july junior justin kevin killer king kitten kitty knight
ladies lakers lauren legend letmein letmeinplease liberty lion liverpool login logitech london looking
louise love lovely loveme lover loveyou lucky madison madrid maggie magic manager manchester marina mark
marlboro martin marvin master matrix matthew maverick maxwell melissa member mercedes merlin mexico
michael michelle mickey midnight miller minecraft misty monday money monica monkey monster morgan mother
mountain muffin murphy music mustang naruto nascar natasha nathan newpassword newyork nicholas nicole
ninja nirvana nissan nobody nothing november october oliver olivia online oracle orange parker partner
pass passer passme passphrase passwd password passwordpassword passwords passwort patrick peaches peanut
pencil penguin pepper peter phantom phoenix piglet pikachu player please pokemon police popcorn porsche
postgres power precious prince princess private probation public pumpkin purple pussy q1w2e3r4 qazwsx
qwe123 qwer qwert qwerty qwerty123 qwertz rabbit rachel raiders rainbow ranger rangers raspberry rebecca
redhat redsox remember richard robert rocket root rootroot rosebud runner sabrina samantha sample samsung
samuel sandra saturday scooby scorpio scorpion scott secret security september server service sexy shadow
shannon sierra silver simpsons single skywalker slayer smokey snoopy snowball soccer sophie spider
spiderman spring squirrel star starwars steelers stella steven student success summer sunday sunflower
sunshine super superman superuser supervisor support sweet swordfish sydney system taylor teacher temp
temporary tennis teresa test tester testing testpassword testtest thomas thunder thursday tiffany tiger
tigers tigger tinkerbell tintin tomcat toor topsecret toyota travis trinity trouble trustme trustno
trustnoone tuesday turtle tweety ubuntu unicorn unknown user username vanessa victor victoria viking
vincent virginia warcraft warrior webmaster wednesday welcome welcomehome whatever william willow wilson
windows winner winston winter wizard wolf wolverine woman wonder xavier yamaha yankees yellow zaq zaq12wsx
zaqwsx zxcvbn zxcvbnm
"""
COMMON = frozenset(_WORDS.split())

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
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
    "1q2w3e4r5t6y7u8i9o0p",
)
