"""The definition of all settings: type, default, description, limits and environment variable of each.

`Settings` is a frozen tree of the defaults. The editors' settings pages are generated from here.

Not here: the list made of them, and reading values (`settings_layers.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Auto = Literal["auto"]

MOST_ATTEMPTS = 8
"""How often one task can be tried at once."""


def _setting(
    default: Any,
    description: str,
    *,
    env: str = "",
    restricted: bool = False,
    secret: bool = False,
    in_editor: bool | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
) -> Any:
    """Return a dataclass field of the settings tree.

    `env` names an environment variable; `restricted` marks what an untrusted workspace must not set;
    `secret` values are never shown or logged; `in_editor` is whether editors offer it in their settings, None for all
    but secrets; `minimum` and `maximum` bound numbers.
    """
    metadata = {
        "description": description,
        "env": env,
        "restricted": restricted,
        "secret": secret,
        "in_editor": not secret if in_editor is None else in_editor,
        "minimum": minimum,
        "maximum": maximum,
    }
    if isinstance(default, dict):
        # A dict has no hash, and the frozen tree needs one.
        return field(default_factory=lambda: dict(default), metadata=metadata, hash=False)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class ModelSettings:
    """The settings `codeagent.model.*`: which models answer, on which server, and how they are asked."""

    provider: Literal[
        "auto", "openai", "responses", "anthropic", "gemini", "ollama", "llamacpp", "embedded", "scripted"
    ] = _setting("auto", "Which kind of model endpoint to use; `auto` looks for one.", restricted=True)
    base_url: str | None = _setting(
        None,
        "URL of the model server, for instance `http://127.0.0.1:8080/v1`.",
        env="CODEAGENT_BASE_URL",
        restricted=True,
    )
    name: str | None = _setting(
        None,
        "Name of the model; for the provider `scripted`, the path of the script.",
        env="CODEAGENT_MODEL",
        restricted=True,
    )
    api_key: str | None = _setting(
        None,
        "API key, better set in the environment; never logged or shown.",
        env="CODEAGENT_API_KEY",
        restricted=True,
        secret=True,
    )
    api_mode: Literal["chat", "completion"] = _setting(
        "chat", "`chat` for OpenAI-compatible servers, `completion` for llama.cpp's raw endpoint."
    )
    tool_calling: Literal["auto", "native", "constrained", "text"] = _setting(
        "auto", "How the model calls tools; `auto` probes once per model and remembers."
    )
    temperature: float = _setting(0.0, "Sampling temperature.", minimum=0, maximum=2)
    effort: Literal["auto", "none", "low", "medium", "high"] = _setting(
        "auto", "How much a model that can reason does so, in its provider's terms; `auto` leaves it to the provider."
    )
    max_tokens: int | Auto = _setting(
        "auto",
        "Most tokens of one reply; `auto`: a quarter of a window up to 16,000 tokens, and for larger ones the longest "
        "reply known of the model, else a quarter, at most 32,000, more after a reply was cut.",
        minimum=1,
    )
    small: str | None = _setting(
        None,
        "Model for summaries and other small work: a name at the same server, `NAME@URL` at another, or `embedded`.",
        restricted=True,
    )
    inline: str | None = _setting(
        None,
        "Model that completes code while you type, written as for `model.small`; empty for `model.name`.",
        restricted=True,
    )
    next_edit: str | None = _setting(
        None,
        "Next-edit model (Sweep, Zeta, Mercury) that is asked where the rules find no next edit, written as for "
        "`model.small`; empty for none.",
        restricted=True,
    )
    fallback: tuple[str, ...] = _setting(
        (),
        "Models, at most three, that take over in this order when one fails; written as for `model.small`.",
        restricted=True,
    )
    context_window: int | Auto = _setting("auto", "Size of the model's window in tokens.", minimum=1024)
    timeout_seconds: int = _setting(
        300,
        "Longest wait for the first token of a reply and, if it is over 60, for each next one, in seconds.",
        minimum=1,
        maximum=3600,
    )
    headers: Mapping[str, str] = _setting(
        {},
        "HTTP headers of every request to the model's server, by name; their values are never logged or shown.",
        restricted=True,
        secret=True,
        in_editor=True,
    )
    query: Mapping[str, str] = _setting(
        {},
        "Parameters that are added to the URL of every request to the model's server, as Azure's `api-version`.",
        restricted=True,
        secret=True,
        in_editor=True,
    )


@dataclass(frozen=True)
class NetworkSettings:
    """The settings `codeagent.network.*`: certificates and proxy for all requests."""

    ca_file: str | None = _setting(
        None, "File with certificates (PEM) to trust besides those of the system.", restricted=True
    )
    client_cert: str | None = _setting(
        None, "File with a client certificate and its key (PEM), for servers that demand one.", restricted=True
    )
    proxy: str | None = _setting(
        None,
        "URL of the proxy for all hosts but this machine and those in `NO_PROXY`; empty for the environment's.",
        restricted=True,
        secret=True,
        in_editor=True,
    )


@dataclass(frozen=True)
class AgentSettings:
    """The settings `codeagent.agent.*`: how a task is worked on."""

    planning: Literal["auto", "always", "never"] = _setting(
        "auto", "Whether a task is planned in steps first; `auto` lets the model decide."
    )
    plan_approval: Literal["auto", "always", "never"] = _setting(
        "auto",
        "Whether a plan waits for you before it starts, so that its steps can be changed; `auto` waits where plan mode "
        "was chosen for the task.",
    )
    intent_gate: bool = _setting(True, "Tell questions from tasks before planning.")
    max_iterations: int | Auto = _setting(
        "auto",
        "Most model calls per run or per plan step; `auto`: 20 for a window up to 16,000 tokens, 200 for larger ones.",
        minimum=1,
        maximum=500,
    )
    answer_form: Literal["auto", "tools", "whole", "function", "line", "blocks", "diff"] = _setting(
        "auto",
        "How the model hands over changed code: by tool calls, or as whole files, whole functions, one line, search "
        "and replace blocks, or a diff; `auto` takes what the model has proved to be good at.",
    )
    attempts: int = _setting(
        3, "Answers that are asked for and checked before a task without tool calls is given up.", minimum=1, maximum=20
    )


@dataclass(frozen=True)
class BudgetSettings:
    """The settings `codeagent.budget.*`: the most that one run may spend; None for no limit."""

    usd: float | None = _setting(
        None, "Most US dollars that one run may cost, where the model's prices are known.", minimum=0
    )
    tokens: int | None = _setting(None, "Most tokens of one run, prompts and replies together.", minimum=1)


@dataclass(frozen=True)
class ContextSettings:
    """The settings `codeagent.context.*`: how much of a conversation and of files a model is sent."""

    max_messages: int | Auto = _setting(
        "auto",
        "Most messages of history that are sent; `auto`: 30 for a window up to 16,000 tokens, any number for larger "
        "ones.",
        minimum=4,
    )
    focused_files_max_chars: int = _setting(
        100_000, "Most characters of file text kept in front of the model.", minimum=1000
    )
    compact_at: float = _setting(
        0.8, "Share of the window at which old turns are summarised.", minimum=0.2, maximum=0.95
    )


@dataclass(frozen=True)
class EditsSettings:
    """The settings `codeagent.edits.*`: when changes are applied, and what follows."""

    apply: Literal["review", "auto", "live"] = _setting(
        "review",
        "`review` asks once with all changes, `auto` applies without asking, `live` applies each edit when it is made.",
        restricted=True,
    )
    save_after_apply: bool = _setting(False, "Save the files that an accepted change touched.")
    diagnostics: Literal["auto", "off"] = _setting(
        "auto",
        "`auto` tells the model and you which errors each edit makes and fixes, by language servers and linters.",
    )


@dataclass(frozen=True)
class InlineSettings:
    """The settings `codeagent.inline.*`: completions and next edits while the user types."""

    enabled: bool | Auto = _setting(
        "auto",
        "Complete code while you type; `auto` does so where a model that fills in the middle is on this machine.",
    )
    plain: bool | Auto = _setting(
        "auto",
        "Also offer the completion as an entry of the editor's list; `auto` does so in editors without ghost text.",
    )
    debounce_ms: int = _setting(
        150, "Pause in typing before a model is asked, in milliseconds.", minimum=0, maximum=5000
    )
    max_lines: int = _setting(10, "Most lines of one completion.", minimum=1, maximum=100)
    next_edit: bool = _setting(True, "Offer to repeat your last edits where the same change is due.")


@dataclass(frozen=True)
class PermissionsSettings:
    """The settings `codeagent.permissions.*`: what the agent may do without asking."""

    mode: Literal["ask", "acceptEdits", "readOnly", "bypass"] = _setting(
        "ask", "What the agent may do without asking.", restricted=True
    )
    allow: tuple[str, ...] = _setting((), "Rules `tool(pattern)` that allow.", restricted=True)
    ask: tuple[str, ...] = _setting((), "Rules `tool(pattern)` that ask.", restricted=True)
    deny: tuple[str, ...] = _setting((), "Rules `tool(pattern)` that deny.", restricted=True)


@dataclass(frozen=True)
class ShellSettings:
    """The settings `codeagent.shell.*`: how commands are isolated, and their limits."""

    isolation: Literal["auto", "overlay", "copy", "direct"] = _setting(
        "auto", "How commands are kept from your files.", restricted=True
    )
    confirm: Literal["always", "unisolated", "never"] = _setting(
        "unisolated", "When a command needs your approval.", restricted=True
    )
    container_image: str | None = _setting(
        None,
        "Image in whose containers commands run, by Docker or Podman; empty for no containers.",
        env="CODEAGENT_CONTAINER_IMAGE",
        restricted=True,
    )
    allow_network: bool = _setting(False, "Whether commands may use the network.", restricted=True)
    timeout_seconds: int = _setting(300, "Time limit of one command, in seconds.", minimum=1, maximum=600)
    max_output_bytes: int = _setting(16 * 1024 * 1024, "Output limit of one command.", minimum=1024)
    readable: tuple[str, ...] = _setting(
        (), "Folders of the home that commands may read besides the workspace.", restricted=True
    )


@dataclass(frozen=True)
class ToolsSettings:
    """The settings `codeagent.tools.*`: which tools there are, and the limits of one call."""

    disabled: tuple[str, ...] = _setting((), "Names of tools that are switched off.")
    max_output_bytes: int = _setting(51_200, "Longest tool result given to the model.", minimum=1024)
    timeout_seconds: int = _setting(30, "Time limit of one tool call, in seconds.", minimum=1)


@dataclass(frozen=True)
class CircuitBreakerSettings:
    """The settings `codeagent.circuitBreaker.*`: when a failing tool is switched off, and for how long."""

    failure_threshold: int = _setting(
        3, "Failures in a row after which a tool rests.", env="CIRCUIT_FAILURE_THRESHOLD", minimum=1
    )
    recovery_timeout_seconds: int = _setting(
        300, "How long such a tool rests, in seconds.", env="CIRCUIT_RECOVERY_TIMEOUT", minimum=1
    )


@dataclass(frozen=True)
class McpSettings:
    """The settings `codeagent.mcp.*`: the MCP servers whose tools are offered."""

    servers: Mapping[str, Any] = _setting(
        {}, "MCP servers by name, each with command or url; docs/mcp.md has all keys.", restricted=True
    )


@dataclass(frozen=True)
class WebSettings:
    """The settings `codeagent.web.*`: the web search, its cache, and the hosts that need no approval."""

    search_provider: Literal["auto", "tavily", "metasearch"] = _setting(
        "auto", "Which web search to use; `auto` takes Tavily when there is a key, else a metasearch.", restricted=True
    )
    search_api_key: str | None = _setting(
        None, "Key of the search service.", env="TAVILY_API_KEY", restricted=True, secret=True
    )
    cache_url: str | None = _setting(None, "Where web results are cached; empty for a local file.", restricted=True)
    cache_seconds: int = _setting(3600, "How long results of a web search are kept, in seconds.", minimum=0)
    allowed_hosts: tuple[str, ...] = _setting((), "Hosts that may be fetched without asking.", restricted=True)


@dataclass(frozen=True)
class RepoMapSettings:
    """The settings `codeagent.repoMap.*`: the size of the overview of the workspace in prompts."""

    max_tokens: int | Auto = _setting("auto", "Budget of the repo map in tokens.", minimum=0)


@dataclass(frozen=True)
class IndexSettings:
    """The settings `codeagent.index.*`: the code index, and its vectors."""

    enabled: bool = _setting(True, "Build the code index.")
    semantic: bool | Auto = _setting("auto", "Add vectors to the code search.")
    uri: str | None = _setting(
        None, "Where the vectors of the index are kept; empty for the local state folder.", restricted=True
    )
    embeddings_base_url: str | None = _setting(
        None, "URL of an embeddings server; empty for the built-in model.", restricted=True
    )


@dataclass(frozen=True)
class ForeignSettings:
    """The settings `codeagent.foreign.*`: whether changes by other programs are watched."""

    watch: Literal["auto", "off"] = _setting(
        "auto",
        "`auto` gathers what other programs change in the workspace, so that you can review it and take it back.",
    )


@dataclass(frozen=True)
class TraceSettings:
    """The settings `codeagent.trace.*`: what is recorded, and whether secrets are masked."""

    enabled: bool = _setting(True, "Record events and model calls for reproduction.")
    sanitize: bool = _setting(True, "Mask secrets in records.", env="TRACE_SANITIZE")


@dataclass(frozen=True)
class SkillsSettings:
    """The settings `codeagent.skills.*`: where skills are looked for."""

    paths: tuple[str, ...] = _setting((), "More folders with skills.", restricted=True)


@dataclass(frozen=True)
class MemorySettings:
    """The settings `codeagent.memory.*`: whether facts about the workspace are remembered."""

    enabled: bool = _setting(True, "Remember conventions and decisions of this workspace.")


@dataclass(frozen=True)
class LendSettings:
    """The settings `codeagent.lend.*`: whether other agents may use the editor."""

    editor: Literal["ask", "off"] = _setting(
        "ask",
        "Whether other agents on this machine may use this editor by `codeagent-lsp editor-mcp`: `ask` asks once for "
        "each of them, `off` lets none.",
        restricted=True,
    )


@dataclass(frozen=True)
class Settings:
    """All settings, i.e. the section `codeagent`."""

    model: ModelSettings = field(default_factory=ModelSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    agent: AgentSettings = field(default_factory=AgentSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    edits: EditsSettings = field(default_factory=EditsSettings)
    inline: InlineSettings = field(default_factory=InlineSettings)
    permissions: PermissionsSettings = field(default_factory=PermissionsSettings)
    shell: ShellSettings = field(default_factory=ShellSettings)
    tools: ToolsSettings = field(default_factory=ToolsSettings)
    circuit_breaker: CircuitBreakerSettings = field(default_factory=CircuitBreakerSettings)
    mcp: McpSettings = field(default_factory=McpSettings)
    web: WebSettings = field(default_factory=WebSettings)
    repo_map: RepoMapSettings = field(default_factory=RepoMapSettings)
    index: IndexSettings = field(default_factory=IndexSettings)
    foreign: ForeignSettings = field(default_factory=ForeignSettings)
    trace: TraceSettings = field(default_factory=TraceSettings)
    skills: SkillsSettings = field(default_factory=SkillsSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    lend: LendSettings = field(default_factory=LendSettings)
    language_servers: Mapping[str, Any] = _setting(
        {},
        "Language servers by name, each with command and languages, or `false` for none of that name; "
        "docs/language-servers.md has all keys.",
        restricted=True,
    )
    language: Literal["auto", "en", "zh-cn"] = _setting("auto", "Language of messages; `auto` follows the editor.")
