"""The most frequent words of the languages that share a script: articles, pronouns, particles, small numbers.

About half of any text is made of them, and a detector trained on letter sequences says least about short words. A
word that several languages have is listed for each; a foreign one that reads like a word of another language
(German `also`) is listed there too.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from functools import cache

from r1pipe.rewards.words.scripts import script_of

_WORDS = {
    "en": """
the of and to in is are was were be been it its that this these those for on with as at by an or if so we you
they he she him her his their our my me us them then than not no do does did have has had can could will would
shall should must may might let let's from but there here which what when where who how why all any each both
some more most other another only also just now first next therefore hence because since thus into out up down
about after before between over under again same such very much many one two three four five six seven eight
nine ten plus minus times equals gives makes get got make use using we're we'll we've i'm i'll it's that's don't
doesn't isn't can't there's what's didn't start wait yes while until without within per every own come once due
pour encore dove hat war man prima ella elle
""",
    "es": """
el la los las un una unos unas de del al que en es son con por para se lo le les su sus no si sí más mas como
pero este esta esto estos estas ese esa eso entonces luego ahora primero porque cuando donde hay ser está están
tiene tienen tenemos debe debemos podemos puede pueden hemos así ya muy también sin sobre entre hasta desde cada
todo todos toda todas otro otra otros otras mismo misma ambos cual cuál qué cómo nos mi tu yo él ella ellos
nosotros uno dos tres cuatro cinco seis siete ocho nueve diez menos igual vamos sea fue era según siguiente ni
pues aún solo sólo tanto vez cuántos cuánto bien tren par va
""",
    "fr": """
à oui non le la les un une des de du au aux et est sont que qui dans en on nous vous il elle ils elles je tu ce
cet cette ces pour par sur avec sans pas ne ou où donc alors mais si plus moins comme se sa son ses leur leurs
notre nos mon ma mes d' l' qu' c' n' s' j' m' t' être avoir avons ont été peut peuvent doit faut fait ainsi car
puis ensuite maintenant aussi même tout tous toute toutes chaque entre deux trois quatre cinq six sept huit neuf
dix quand quel quelle quels quelles autre autres cela ceci ça parce puisque lorsque depuis vers chez sous après
avant encore très bien voici soit dont combien bon va vais moi toi lui dois
""",
    "de": """
ja nein der die das den dem des ein eine einen einem einer eines und oder aber ist sind war waren sein wird
werden wurde hat haben hatte ich du er sie es wir ihr man sich nicht kein keine keinen mit von zu zum zur bei
aus auf an am im in für über unter durch um als wie wenn dann also dass daß weil da denn so auch noch nur schon
sehr mehr jetzt nun zuerst zunächst danach daher deshalb somit damit davon dazu diese dieser dieses diesen
diesem jede jeder jedes jeden jedem alle alles beide beiden was wer welche welcher welches wo hier dort können
kann muss müssen soll sollte sollten lässt gilt nach vor zwischen ohne gegen bis eins zwei drei vier fünf sechs
sieben acht neun zehn ergibt ergeben uns unser ihre ihren seine seinen mal plus minus weniger gleich wieder
einmal will ella elle
""",
    "pt": """
nem os um uma uns umas de do da dos das no na nos nas ao aos à às que em é são com por para pelo pela pelos
pelas se não sim mais mas como este esta isto estes estas esse essa isso esses essas aquele aquela então logo
depois agora primeiro porque quando onde há ser está estão tem têm temos deve devemos podemos pode podem assim
já muito também sem sobre entre até desde cada todo todos toda todas outro outra outros outras mesmo mesma ambos
qual quais nós meu seu sua seus suas eu ele ela eles você dois duas três quatro cinco seis sete oito nove dez
menos igual vamos seja foi era portanto ou as lhe só ainda ficar fica obtemos num numa vez quantos quanto par
vai
""",
    "it": """
no il lo la gli le un uno una di del dello della dei degli delle da dal dalla dai al allo alla ai alle nel nella
nei nelle sul sulla che in è sono con per tra fra si non sì più meno ma come questo questa questi queste quello
quella quelli quelle quindi poi ora adesso prima perché quando dove c'è ci essere ha hanno abbiamo deve dobbiamo
possiamo può possono così già molto anche senza ogni tutto tutti tutta tutte altro altra altri altre stesso
stessa entrambi quale quali noi mio suo sua suoi io lui lei loro due tre quattro cinque sei sette otto nove
dieci uguale allora dunque pertanto poiché siccome se ed l' d' un' dell' all' nell' sull' dall' quest' c' sia
era fu ne cioè infatti invece ancora solo subito quanti quanto volta va hai
""",
    "vi": """
ở vâng là và của có không được cho với các những một hai ba bốn năm sáu bảy tám chín mười này đó khi nếu thì nên
vì vậy do để từ trong trên ta tôi chúng mỗi cũng đã sẽ đang rồi lại ra vào phải cần như hay hoặc bằng hơn nhất
tại đến về sau trước đầu tiên tiếp bây giờ hãy cộng trừ nhân chia số bao nhiêu thêm còn
""",
    "ru": """
да нет и в во на не что это как то по из за от для мы он она они оно я ты вы его её ее их к у с со о об же бы но
а или если тогда так также значит поэтому потому теперь сначала затем потом где когда чтобы который которая
которое которые которого быть есть был была было были будет равен равна равно равны все всё весь каждый каждая
каждой каждого каждом каждую между после перед до при без над под нам нас вам один одна два две три четыре пять
шесть семь восемь девять десять плюс минус нужно надо можно ещё еще уже только очень этот эта эти этого этой
этом того тот та те пусть следовательно итак получаем имеем больше меньше другой сколько раз
""",
    "uk": """
так ні і й в у на не що це як то по з із зі за від для ми він вона вони воно я ти ви його її їх до о об ж же би
б але а або якщо тоді також отже тому тепер спочатку потім де коли щоб який яка яке які якого бути є був була
було були буде дорівнює дорівнюють все всі весь кожен кожна кожній кожного кожному між після перед при без над
під нам нас вам один одна два дві три чотири п'ять шість сім вісім дев'ять десять плюс мінус треба потрібно
можна ще вже тільки лише дуже цей ця ці цього цій того той та те нехай отримуємо маємо більше менше інший
оскільки бо скільки раз
""",
    "bg": """
да не и в във на че това как то по от за с със ние той тя те аз ти вие го я ги му ѝ й им към до у но а или ако
тогава така също значи затова защото сега първо след после къде кога който която което които бъде е съм са беше
бяха ще равен равна равно равни всички всичко всеки всяка всяко между преди при без над под нас вас ни ви един
една едно два две три четири пет шест седем осем девет десет плюс минус трябва може още вече само много този
тази тези тъй нека получаваме имаме повече по-малко друг се си ли като колко пъти
""",
    "ar": """
نعم في من إلى على عن أن إن لا ما هو هي هذا هذه ذلك تلك التي الذي الذين ثم أو كان كانت يكون تكون كل بعد قبل بين
عند عندما إذا إذن لذلك لأن لكن مع أي قد لقد نحن هم أنا أنت له لها لهم لنا فإن بما حيث أولا أولاً الآن معا معاً
أيضا أيضاً فقط ليس ليست يجب يمكن غير كما منها منه فيها فيه عليه به بها وهو وهي وهذا يساوي تساوي نحصل لدينا وأن
""",
    "fa": """
بله نه در از به که را با این آن است هست نیست بود شد شود می نمی برای تا هم یا اگر پس سپس چون زیرا بنابراین هر هیچ
ما من تو او آنها شما خود یک دو سه چهار پنج شش هفت هشت ده بر روی بین بعد قبل اکنون حالا ابتدا اول باید توان داریم
دارد دارند کنیم کند کنم کنید می‌کنیم می‌شود می‌دانیم آنگاه همچنین فقط دیگر همه برابر
""",
    "ur": """
ہاں ہے ہیں تھا تھے تھی کا کی کے کو نے سے میں پر اور یہ وہ اس ان جو کہ تو بھی ہی نہیں ہم آپ مجھے ہمیں اگر پھر لیے
لئے اب پہلے سب ایک دو تین چار پانچ چھ سات آٹھ نو دس کر کرتے کرنے کریں ہو ہوتا ہوتی ہوتے گا گی گے جب کیونکہ چونکہ
دونوں ہر کل یا تک والا والے والی ساتھ بعد کیا برابر
""",
    "hi": """
हाँ है हैं था थे थी का की के को ने से में पर और यह वह इस उस इन उन जो कि तो भी ही नहीं हम आप मैं मुझे हमें अगर
यदि फिर इसलिए लिए अब पहले सब एक दो तीन चार पाँच पांच छह सात आठ नौ दस कर करते करने करें हो होता होती होते गा गी
गे जब क्योंकि चूँकि चूंकि दोनों हर प्रत्येक कुल या तक वाला वाले वाली साथ बाद क्या हमारे पास अतः आता मिलता
""",
    "mr": """
होय आहे आहेत होते होता होती चा ची चे च्या ला ने नी शी आणि हे हा ही तो ती ते या त्या जो जी की तर पण सुद्धा नाही
नाहीत आपण मी मला आम्ही आपल्याला जर मग म्हणून साठी आता प्रथम सर्व एक दोन तीन चार पाच सहा सात आठ नऊ दहा करून करू
करा असेल असतो असते जेव्हा कारण दोन्ही प्रत्येक एकूण किंवा पर्यंत नंतर काय मिळते येते केल्यास पाहिजे वर मध्ये
असल्यामुळे असे हेच आपले
""",
}


def bare(word: str) -> str:
    """Without accents, as people type and as a policy may write to pass for another language."""
    folded = unicodedata.normalize("NFD", word.replace("đ", "d").replace("ß", "ss").replace("œ", "oe"))
    return "".join(c for c in folded if not unicodedata.combining(c))


def listed(language: str) -> bool:
    """Whether words of a language are listed."""
    return language in _WORDS


@cache
def _table() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = defaultdict(set)
    for language, text in _WORDS.items():
        for word in text.replace("\u200c", "").split():
            table[unicodedata.normalize("NFKC", word)].add(language)
            if script_of(language) == "latin" and len(bare(word)) > 1:
                table[bare(word)].add(language)
    return {word: frozenset(languages) for word, languages in table.items()}


def languages(word: str) -> frozenset[str]:
    """The languages that list a word (lower case), or what stands before its apostrophe (`l'aire`)."""
    table = _table()
    found = table.get(word)
    if found is None and "'" in word:
        found = table.get(word.partition("'")[0] + "'")
    return found or frozenset()
