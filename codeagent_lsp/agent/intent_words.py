"""The regular expressions that `intent.py` classifies requests with, in English and Chinese. Patterns only, no rules.

All but `NAME_OF_CODE` are matched against one line of normalised lower-case text. `ENGLISH` and `CHINESE` hold the
patterns that both languages have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IntentWords:
    """The patterns of one language by which requests are classified. `polite` matches openings that are removed before,
    `here` words that refer to the workspace's code, `chat` small talk, `about_us` questions about the agent, `pastime`
    topics that are no code, `look` wishes to look or explain, `knowledge` and `aimed` questions about the world and
    about this code, `why_trouble` questions why something fails. `can_you` and `in_general` together make a question
    about abilities.
    """

    chat: re.Pattern[str]
    polite: re.Pattern[str]
    can_you: re.Pattern[str]
    in_general: re.Pattern[str]
    about_us: re.Pattern[str]
    pastime: re.Pattern[str]
    here: re.Pattern[str]
    look: re.Pattern[str]
    aimed: re.Pattern[str]
    knowledge: re.Pattern[str]
    why_trouble: re.Pattern[str]


def _any(source: str) -> str:
    """Return a pattern that matches any word of `source`; underscores in a word match spaces."""
    return "(?:" + "|".join(word.replace("_", " ") for word in source.split()) + ")"


HAN = re.compile(r"[\u3400-\u9fff]")
# Greek, Cyrillic, Arabic, Indic and others up to U+1FFF, kana, Hangul: languages that the rules do not read.
OTHER_SCRIPT = re.compile(r"[\u0370-\u1fff\u3040-\u30ff\uac00-\ud7af]")
# In backticks, "file.py", `a/b`, `src/`, `snake_case`, `call()`, `camelCase`, `PascalCase`.
NAME_OF_CODE = re.compile(
    r"`[^`]+`|\b[\w-]+\.(?!\s)[a-zA-Z]\w{0,5}\b|\w/\w|\w/(?=\s|$|[\u3400-\u9fff])|[a-zA-Z0-9]_[a-zA-Z0-9]"
    r"|\w\(\)|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*"
)

# possessive: otherwise a long row of such words backtracks exponentially
_EN_CHAT = re.compile(
    r"(?:please )?(?:say |greet )?(?:(?>hi(?:ya)?|hey|hello|something|me|us|thanks|thank you|thx|cheers|bye|goodbye"
    r"|see you"
    r"|good (?:morning|evening|night|afternoon|day|job|work)|how are you(?: doing)?|what's up"
    r"|nice(?: work| job| to meet you)?|well done|great(?: work| job)?|awesome|cool|perfect"
    r"|you(?:'re| are) (?:awesome|great|the best|welcome)|sorry|lol|haha|that (?:was|is)(?: \w+)?|there|again"
    r"|(?:so|very) much|a lot|for (?:your|the) help|today|everyone|friend|buddy|please|to (?:me|us|everyone|the world)"
    r"|in (?:french|german|spanish|italian|chinese|japanese|english|portuguese|russian))\b[\s,.!?]*+)++"
)
# Stripped from the front, again and again: what is left begins with the word that says what is wanted.
_EN_POLITE = re.compile(
    r"^(?:(?:hi|hey|hello|please|pls|ok|okay|so|now|then|and|also|just|kindly|can you|could you|would you(?: mind)?"
    r"|will you|can we|could we|shall we|i want you to|i'd like you to|i would like you to|i need you to"
    r"|help me(?: to)?"
    r"|let's|let us|we should|you should|we need to|i want to|i'd like to|i need to|you need to|try to|go ahead and"
    r"|how about|are you able to|is it possible (?:for you )?to|next|first|quickly|carefully)\b[\s,!.:]*)+"
)
# Both a question about abilities and a polite request begin like this; what follows decides (`_EN_IN_GENERAL`).
_EN_CAN_YOU = re.compile(
    r"(?:hi|hey|hello|ok|so)?[\s,!]*(?:can|could) you\b|are you able to\b|is it possible for you to\b"
)
_EN_THINGS = (
    r"(?:my |your |the |shell |terminal |bash |git |unit |pull |merge |source |new |multiple |whole |web "
    r"|python |some |"
    r"other |any |a |an |and |or )*(?:files?|folders?|code|tests?|commands?|internet|web|terminal|shell|requests?"
    r"|scripts?|programs?|images?|screens?|projects?|repositor(?:y|ies)|commits?|packages?|websites?|editors?"
    r"|languages?"
    r"|functions?|docs|documentation|comments|bugs|searches|apps?)"
)
# What follows "can you" in a question about abilities: `run shell commands?`. With `this` or a name it is a task.
_EN_IN_GENERAL = re.compile(
    r"(?:write|edit|read|run|execute|create|delete|access|browse|search|open|change|modify|see|use|make|install"
    r"|debug"
    r"|generate|fix|review|refactor|work with|speak|understand|handle)(?: (?:and|or|,) \w+)? "
    + _EN_THINGS
    + r"(?: too| as well| for me| by yourself| on your own)?[\s?.!]*"
)
# `Do you support Rust?` is answered from what is known of us, without a look at the workspace.
_EN_ABOUT_US = re.compile(
    r"\bwho (?:are|made|created|built|trained) you\b|\bwhat (?:can|could) you\b|\bwhat are you\b"
    r"|\bwhat are your\b|\b(?:what|which) (?:\w+ ){0,2}(?:model|llm|ai)\b.*\byou\b"
    r"|\b(?:what|which) (?:\w+ )?(?:tools?|languages?|commands?|features?|skills?|models?)\b.*\b(?:do|can"
    r"|are) (?:you|i)\b"
    r"|^are you (?:able|a|an|the|gpt|claude|based|running|open|free|safe|human|local|connected|capable)\b"
    r"|\bhow (?:do|can|should|to) i? ?use you\b|\bhow (?:do|can) you (?:work|help|assist)\b"
    r"|^(?:do|did|will|have|don't) you (?:support|know|have|remember|send|store|understand|speak|use|need|keep"
    r"|share"
    r"|collect|work|see|ask|change|save|upload|run|learn)\b"
    r"|^help[\s!?.]*$|\byour (?:capabilities|abilities|limitations|limits|name|context window|training data)\b"
    r"|^(?:introduce|tell me about) yourself\b|\bis it possible for you to\b|^are you able to (?!.*\b(?:this"
    r"|the)\b)"
)
_EN_PASTIME = re.compile(
    r"\b(?:joke|haiku|poem|story|song|riddle|weather|recipe|movie|horoscope|meaning of life|how (?:are|old are) you"
    r"|capital of|(?:good|best) (?:\w+ )?(?:book|books|movie|music)|history of|who (?:invented|discovered)"
    r"|how old is|what time is it|favou?rite (?:colou?r|food|language))\b"
)
_EN_VERBS = _any(
    "fix repair correct solve resolve patch implement add create write build make develop code program generate"
    " scaffold"
    " rename refactor restructure rewrite rework reorganise reorganize clean cleanup simplify extract inline"
    " split merge"
    " move remove delete drop strip replace swap change modify edit adjust tweak update upgrade bump downgrade"
    " migrate"
    " port convert turn transform translate switch optimise optimize improve speed reduce increase lower raise"
    " set_up set"
    " configure install uninstall setup enable disable hide support handle introduce integrate connect wire hook"
    " use"
    " apply revert undo roll_back rollback restore run execute rerun launch start stop deploy publish release"
    " commit push"
    " rebase stage format lint sort order group document annotate comment mock test cover ensure enforce"
    " validate prevent"
    " avoid allow make_sure let get complete finish fill implement define declare expose export import initialise"
    " initialize init put insert append wrap unwrap bring give_the give_it catch log print return raise throw"
    " cache retry"
    " parametrise parametrize parameterize deduplicate unify centralise override extend adapt stop_the do_not"
    " don't never"
    " bootstrap prepare draft design dockerize dockerise pin port polish rearrange redo regenerate align animate"
    " style"
)
# `Adding a test` as a whole instruction, as in the subject of a commit.
_EN_ING = _any(
    "fixing adding renaming writing creating removing changing updating moving refactoring implementing replacing"
    " converting deleting making splitting cleaning running switching"
)
# `write me a good joke` is no wish for code.
_EN_NOT_A_WISH = r"(?! (?:me )?(?:a |an )?(?:good )?(?:joke|poem|story|haiku))"
EN_CHANGE = re.compile(rf"(?:{_EN_VERBS}|{_EN_ING})\b(?! (?:is|are|was|does)\b){_EN_NOT_A_WISH}|get rid of\b")
# A wish to know is none for a change.
EN_WISH = re.compile(
    r"(?:please |hi,? |hello,? )*(?:i|we) (?:want|need|would like|'d like|should|have to|must)\b(?! to (?:know"
    r"|understand"
    r"|see|ask|learn|find out))|(?:i|we)'d like (?!to (?:know|understand|see|ask|learn))|it should (?:be|have"
    r"|not)\b"
)
# A wish behind other words: `The test fails. Please fix it`, `look at a.py and rename the class`.
EN_CHANGE_LATER = re.compile(
    rf"(?:[.;!,:]|\b(?:please|and|then|and then|but|can you|could you|can we)) ?(?:please |kindly |can you "
    rf"|could you |"
    rf"would you |then |and |also |just )*(?:fix|correct|change|add|remove|rename|update|refactor|repair|implement"
    rf"|rewrite|solve|replace|improve|handle) (?:it|this|that|them|the|these|those|all|both|a|an|any|what|whatever"
    rf"|\w+)\b(?![^.]*\bis for\b)|\bplease (?:do|{_EN_VERBS})\b"
)
_EN_LOOK = re.compile(
    _any(
        "explain describe summarise summarize outline review analyse analyze compare show list find search"
        " locate look"
        " check inspect investigate examine audit identify trace follow walk_me walk_through tell_me understand"
        " count"
        " tell give_me enumerate display map_out study evaluate assess estimate read go_through point_me figure_out"
        " i_don't_understand i_do_not_understand i_want_to_know i_want_to_understand know learn see"
    )
    + r"\b"
)
_EN_HERE = re.compile(
    r"\b(?:this|these|here|our|we|my|us|project|repo|repository|code ?base|files?|modules?|functions?|class(?:es)?"
    r"|methods?|tests?|code|app|application|packages?|lines?|endpoints?|handlers?|components?|scripts?"
    r"|implementations?"
    r"|database|config(?:uration)?|variables?|parameters?|flag|imports?|callbacks?|exceptions?|errors?|queries"
    r"|query"
    r"|request|schema|api|todos?|logic|feature|architecture|startup|usages?|places?|dependencies|performance"
    r"|dead code|(?:how|where|why|when|what) the)\b"
)
EN_QUESTION = re.compile(
    r"(?:where|how|why|what|what's|which|who|whose|when|is|are|does|do|did|has|have|should|could|can|would|was"
    r"|were)\b"
)
_EN_AIMED = re.compile(
    r"^(?:where|which|who|when|what happens|how (?:do|does|is|are|many) (?:the|all|it|they)|is the|are the"
    r"|does the|do the"
    r"|why (?:is|are|does|do) (?:the|it))\b"
)
_EN_KNOWLEDGE = re.compile(
    r"^(?:what is|what's|what are|what does|who (?:is|was)|define|how do you say|when (?:did|was)|where (?:is"
    r"|are) \w+$)"
    r"(?! (?:wrong|happening))|\bdifference between\b|\bmean\?*$"
)
_EN_WHY_TROUBLE = re.compile(
    r"^why (?:is|does|do|are|did)\b.*\b(?:fail|failing|fails|crash|crashes|crashing|broken|slow|error|hang|hangs)\b"
)
# A report of trouble without any wish counts as a wish to have it mended.
EN_TROUBLE = re.compile(
    r"\b(?:\w*error|\w*exception|traceback|fail(?:s|ed|ing|ure)?|crash(?:es|ed|ing)?|broken|bug|doesn't work"
    r"|not work(?:s"
    r"|ing)?|hangs?|stuck|too slow|wrong|regression|should)\b"
)

_ZH_CHAT = re.compile(
    r"(?:(?>你好(?:吗|呀|啊)?|您好|嗨|哈喽|喂|在不在|在吗|[早上下中晚][上午]好|早|晚安|再见|拜拜|谢谢(?:你|您)?"
    r"|多谢|感谢|非常感谢|十分感谢|太感谢了|辛苦了|不客气|对不起|抱歉|干得(?:漂亮|好|不错)|做得(?:很好|好|不错)"
    r"|太棒了|很好|真棒|你真(?:棒|厉害|好)|厉害|哈哈+|不错|今天(?:怎么样|好吗|过得怎么样)|最近(?:怎么样|好吗)"
    r"|大家好|朋友)[\s,.!?。、~]*+)++"
)
# Longer forms stand before those that they begin with, as in every list below: the first that fits is taken.
_ZH_POLITE = re.compile(
    r"^(?:(?:你好|您好|请问|请你|请|麻烦(?:你|您)?|劳烦|拜托|能不能|能否|可不可以|可否|可以|是否可以|你能不能"
    r"|你可以|你能"
    r"|您能|您可以|你会|能够|能|帮忙|帮我|帮|给我|替我|我想让你|我想要你|我要你|我希望你|我需要你|我想|我要"
    r"|我们要|我们需要"
    r"|我需要|需要|想要|想|接下来|现在|然后|再|首先|先|那么|那|顺便|快速|仔细)[\s,，]*)+"
)
_ZH_CAN_YOU = re.compile(r"(?:请问)?[你您](?:能|可以|会|能不能|可不可以|能够|是否)")
_ZH_IN_GENERAL = re.compile(
    r"(?:否|不会|不能|不可以)?(?:直接|自动|自己|帮我)?(?:写|编写|编辑|修改|读|读取|运行|执行|跑|创建|删除|访问"
    r"|浏览|搜索"
    r"|打开|使用|用|安装|生成|调试|查看|看|上|联|处理|审查|重构|提交|说|操作)(?:我的|你的)?(?:shell|bash|git"
    r"|python|单元"
    r"|终端|新|其他|多个|网络)?\s*(?:文件|代码|测试|命令|命令行|网|网络|互联网|网页|终端|程序|脚本|图片|项目"
    r"|仓库|目录|中文|英文"
    r"|拉取请求|合并请求|文档|注释|浏览器|git|shell)(?:吗|么|嘛|不)?[\s?.!。]*"
)
_ZH_ABOUT_US = re.compile(
    r"[你您](?:是谁|叫什么|是什么|是哪个|能做|会做|能干|会干|能帮我(?:做|干|些)|可以做|可以帮我做|都?会(?:什么"
    r"|哪些)"
    r"|用的是?什么模型|是怎么工作|怎么工作|如何工作|是如何工作|支持|懂|了解我|认识|还?记得|有(?:什么|哪些|多少"
    r"|没有)|会说"
    r"|的(?:能力|限制|局限|功能|名字|工具|上下文|模型))|^[你您]是\s*(?:gpt|claude|chatgpt|人|ai|机器人|一个|基于"
    r"|不是|本地"
    r"|开源|谁|什么|由)|^[你您]会(?:把|不会|不经|保存|上传|泄露|记住|学习|发送)|^[你您]能(?:访问|上网|联网)"
    r"|(?:怎么|如何|怎样)(?:使)?用[你您]|^(?:帮助|使用帮助|使用说明)[?!。]*$|介绍一下(?:你|您)?自己|自我介绍"
    r"|(?:有|可以用|能用)(?:什么|哪些)(?:命令|工具|功能|技能)(?:可以用|能用|可用)?[?。]*$"
)
_ZH_PASTIME = re.compile(
    r"笑话|诗|故事|歌词|谜语|天气|菜谱|电影|星座|人生的意义|首都|[本的]书|谁发明|是谁发明|历史上|几岁|多少岁"
    r"|推荐一[本部首]"
)
_ZH_VERBS = (
    r"(?:修复|修一下|修改|修正|修好|修掉|修|改成|改为|改名|改一下|改掉|改|重命名|重写|重构|添加|增加|新增|加上"
    r"|加个|加一"
    r"|加入|加|实现|完成|优化|改进|改善|删除|删掉|删|去掉|去除|移除|移动|移到|替换|换成|换|新建|创建|建立"
    r"|建一?个|写|编写"
    r"|撰写|生成|更新|补全|补上|补充|完善|迁移|拆分|拆成|拆|合并|提取|抽取|封装|运行|执行|跑|提交|推送|撤销|回滚"
    r"|恢复|还原"
    r"|格式化|简化|整理|翻译|配置|安装|卸载|升级|降级|升到|处理|解决|支持|设置|设为|设成|转换|转成|转为|调整"
    r"|降低|提高|提升"
    r"|减少|启用|禁用|引入|集成|接入|部署|发布|统一|兼容|避免|防止|确保|保证|清理|排序|开发|搭建|制作|做一?个)"
)
ZH_CHANGE = re.compile(
    rf"{_ZH_VERBS}|(?:把|将|让|使)(?!我(?:看|了解|明白))|(?:给|为|在|对|用|从|按)[^,，。?]{{1,40}}?{_ZH_VERBS}"
    r"|一?个[^?]{2,}$|不要|别"
)
ZH_CHANGE_LATER = re.compile(
    rf"(?:然后|并且|并|再|接着|同时|帮我|帮忙|请|麻烦|，|,|能|，请|去){_ZH_VERBS}(?:它|好|掉|一下|这|上|了|吧|一"
    rf"|失败|出|$|[?。!])"
    rf"|{_ZH_VERBS}(?:它|一下|掉)(?:吧|吗)?[。?!]*$|(?:把|将)[^,，。]{{1,40}}?(?:{_ZH_VERBS}|成)(?!动)"
)
# Within a sentence the verb alone may only report something: Chinese has no forms of it that differ.
ZH_CHANGE_WITHIN = re.compile(
    rf"(?:需要|应该|希望|想|要|必须|得){_ZH_VERBS}|不要|不应该?|应该|{_ZH_VERBS}(?:成|为|到|上|掉|一下)|显示"
)
_ZH_LOOK = re.compile(
    r"(?:解释|说明|介绍|分析|总结|概括|归纳|列出|列举|查找|查一下|查看|找出|找一下|找到|找找|看看|看一下|看下"
    r"|审查|检查"
    r"|评审|评估|比较|对比|描述|讲解|讲讲|讲一下|说说|说一下|理解|梳理|统计|告诉我|追踪|定位|带我|搜索|搜一下"
    r"|我看不懂|看不懂"
    r"|我不明白|我不理解|了解|阅读|过一遍|画出)"
)
_ZH_HERE = re.compile(
    r"这|那个|那段|我们|我的|本项目|项目|仓库|代码|文件|模块|函数|方法|类|测试|接口|程序|应用|包|组件|脚本"
    r"|数据库|配置|变量|参数"
    r"|导入|回调|异常|报错|日志|请求|架构|流程|入口|性能|目录|逻辑|实现|调用|引用|用到|依赖|字段|行|仓|客户端"
    r"|服务端|是怎么|是如何"
)
ZH_QUESTION = re.compile(
    r"[?]|[吗么呢]|什么|为何|怎么|如何|怎样|哪|谁|多少|几个|是否|有没有|是不是|会不会|能不能|有何|多久|何时"
)
ZH_WHY = re.compile(r"(?:为什么|为何|为啥)")
_ZH_AIMED = re.compile(r"哪里|在哪|哪些|哪个|谁|(?:是)?怎么(?:决定|处理|实现|保证|做到)的?|断开|发生什么|会发生")
_ZH_KNOWLEDGE = re.compile(r"^什么是|是什么[?。]*$|(?:有什么|的)区别|什么意思|有何不同|谁发明")
_ZH_WHY_TROUBLE = re.compile(r"(?:为什么|为何|为啥|怎么).*(?:失败|报错|崩溃|出错|不行|很慢|这么慢|卡住|挂了)")
ZH_TROUBLE = re.compile(
    r"报错?|错误|异常|失败|崩溃|挂了|不好使|不工作|不能用|用不了|太慢|卡住|有问题|不通过|不过|bug|error"
)

ENGLISH = IntentWords(
    _EN_CHAT,
    _EN_POLITE,
    _EN_CAN_YOU,
    _EN_IN_GENERAL,
    _EN_ABOUT_US,
    _EN_PASTIME,
    _EN_HERE,
    _EN_LOOK,
    _EN_AIMED,
    _EN_KNOWLEDGE,
    _EN_WHY_TROUBLE,
)

CHINESE = IntentWords(
    _ZH_CHAT,
    _ZH_POLITE,
    _ZH_CAN_YOU,
    _ZH_IN_GENERAL,
    _ZH_ABOUT_US,
    _ZH_PASTIME,
    _ZH_HERE,
    _ZH_LOOK,
    _ZH_AIMED,
    _ZH_KNOWLEDGE,
    _ZH_WHY_TROUBLE,
)
