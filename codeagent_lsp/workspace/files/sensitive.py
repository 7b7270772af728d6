# ruff: noqa: SIM905 - word lists read better as text

"""Classification of file names in a workspace that are dangerous to write, as a program runs them, or to read.

Based on the name alone, so that files that do not exist yet are covered, after folding what file systems fold: case,
Unicode forms, ignored code points, trailing dots, streams and short names. Not here: resolving paths (`paths.py`) and
the user's permissions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from codeagent_lsp.workspace.text.visible import is_unseen

# Names that are devices for Windows, whatever their ending.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")
_GIT_HOOK = re.compile(
    r"(?:applypatch-msg|fsmonitor-watchman|(?:pre|post|prepare)-[a-z-]+|commit-msg|update|reference-transaction)"
)
_TEST_FOLDERS = frozenset({"test", "tests"})
_COPY_END = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save|copy|tmp|sw[a-p]|[0-9]{1,3}))+$")
# `.name.swp` of Vim, `#name#` and `.#name` of Emacs.
_SWAP = re.compile(r"\.(.+)\.sw[a-p]|\.?#(.+?)#?")
_CODE = r"(?:[cm]?[jt]sx?)"
_DATA = r"(?:json[c5]?|ya?ml|toml)"
_BARE_RC = (
    "bash|zsh|csh|tcsh|ksh|vim|gvim|nvim|ex|kak|input|screen|npm|yarn|env|curl|wget|psql|irb|pry|pdb|pylint|bazel|hg"
)


def runs_later(parts: Sequence[str]) -> bool:
    """Return whether some program runs a file of this name or takes settings from it, or the name deceives. `parts`
    start below the root. Also True for no parts, the root itself, which is never to be moved or deleted.
    """
    folded = [fold(part) for part in parts]
    if not folded or any(map(_spoofs, parts)) or SETTINGS.match(folded) or OBEYED.match(folded):
        return True
    return _runs_by_place(folded) or BUILDS.match(folded)


def only_builds_run(parts: Sequence[str]) -> bool:
    """Return whether a file for which `runs_later` is True is run only by builds and tests of the project, which people
    start. `parts` start below the root; False for none.
    """
    folded = [fold(part) for part in parts]
    if not folded or any(map(_spoofs, parts)) or SETTINGS.match(folded) or OBEYED.match(folded):
        return False
    return not _runs_by_place(folded) and BUILDS.match(folded)


def is_settings(parts: Sequence[str]) -> bool:
    """Return whether a file of this name decides what an editor, an agent, a shell or git runs, so that no command may
    write it. `parts` start below the root; False for none.
    """
    folded = [fold(part) for part in parts]
    return bool(folded) and (not SETTINGS.folders.isdisjoint(folded[:-1]) or SETTINGS.match_file(folded))


def holds_secrets(parts: Sequence[str]) -> bool:
    """Return whether a file of this name usually contains keys or passwords; `parts` start below the root."""
    folded = [fold(part) for part in parts]
    return bool(folded) and (SECRETS.match(folded) or SECRETS.match_file([*folded[:-1], _original(folded[-1])]))


def fold(part: str) -> str:
    """Return a file name as the most permissive file system reads it.

    For example, `.GIT.`, `.g<joiner>it` and `GIT~1` become `.git`.
    """
    # Some file systems ignore invisible characters.
    kept = "".join(char for char in part if char not in "\n\t" and not is_unseen(char))
    # Twice, as folding the case may undo the normal form.
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", kept).casefold())
    # On NTFS `name:stream` opens the same file, and Windows cuts dots and blanks at the end.
    stem = plain.partition(":")[0].rstrip(". ")
    # The short name that Windows gives `.git`.
    return ".git" if re.fullmatch(r"git~\d+", stem) else stem


def _runs_by_place(folded: Sequence[str]) -> bool:
    """Return whether the name has its meaning from its folder: tests' settings, hooks; or is a device of Windows."""
    name = folded[-1]
    if name == "conftest.py":
        return not _TEST_FOLDERS.intersection(folded[:-1])
    hook = len(folded) > 1 and folded[-2] in ("hooks", ".hooks") and _GIT_HOOK.fullmatch(name)
    return bool(hook or _DEVICE.fullmatch(name))


def _original(name: str) -> str:
    """Return the name of the file that an editor's backup or swap file is a copy of; of other files, the name."""
    swap = _SWAP.fullmatch(name)
    if swap:
        return swap[1] or swap[2]
    end = _COPY_END.search(name)
    return name[: end.start()] if end and end.start() else name


def _spoofs(part: str) -> bool:
    """Return whether a name is displayed as something else: line breaks, bidi marks, invisible characters."""
    return any(char in "\n\t" or is_unseen(char) for char in part)


# The table of file names that are dangerous to write, as a program runs or obeys them later, or to read.


@dataclass(frozen=True, slots=True)
class Names:
    """Names of files of one kind: in a folder, by name, by ending, by a pattern of the name or of the whole path."""

    folders: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    name: re.Pattern[str] | None = None
    path: re.Pattern[str] | None = None

    def match(self, folded: Sequence[str]) -> bool:
        """Return whether a folded path, not empty, has such a name, or is or lies in such a folder."""
        return not self.folders.isdisjoint(folded) or self.match_file(folded)

    def match_file(self, folded: Sequence[str]) -> bool:
        """Return whether the file at a folded path, not empty, itself has such a name, whatever folder it is in."""
        name = folded[-1]
        if name in self.files or name.endswith(self.endings):
            return True
        if self.name is not None and self.name.fullmatch(name):
            return True
        return self.path is not None and bool(self.path.search("/".join(folded)))


SETTINGS = Names(
    folders=frozenset(
        """
        .vscode .idea .zed .fleet .cursor .windsurf .kiro .agent .agents .claude .codex .codeagent .gemini .qwen
        .continue .roo .cline .opencode .crush .kilocode .trae .junie .amazonq .augment .githooks .git-hooks .husky
        .lefthook .theia .nvim .idx .codesandbox .qoder .codebuddy .lingma .iflow .zencoder .tabnine .serena .firebender
        .copilot .rulesync .ruler .rovodev .shadowenv.d .smartcd .lvim .cargo-husky .captainhook .overcommit
        """.split()
    ),
    files=frozenset(
        """
        .mcp.json mcp.json .envrc .nvim.lua .exrc .vimrc .nvimrc .lvimrc .dir-locals.el .dir-locals-2.el .bashrc
        .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout
        .claude.json mcp_settings.json cline_mcp_settings.json mcp-config.json mcp.config.json coc-settings.json
        .autoenv .autoenv.zsh .autoenv.leave .env.zsh bash_enter bash_leave .lite_project.lua .tasks .projections.json
        .tmuxinator.yml .tmuxp.yml .tmuxp.yaml .tmuxp.json .wezterm.lua profile.ps1 microsoft.powershell_profile.ps1
        rc.elv xonsh.rc .kilocodemodes
        .inputrc .gitconfig .tcshrc .cshrc .kshrc config.fish authorized_keys .pam_environment .xprofile .xinitrc
        """.split()
    ),
    endings=(".code-workspace",),
    path=re.compile(
        r"(?:^|/)\.git/(?:config|hooks/|info/attributes|modules/.*/(?:config|hooks/))|(?:^|/)\.ssh/"
        r"|\.config/(?:fish|autostart|systemd|nvim|git|nushell)/|(?:^|/)library/launchagents/"
    ),
)
"""Settings that decide what an editor, an agent, a shell or git runs: commands cannot write them, and edits need an
approval.
"""

OBEYED = Names(
    folders=frozenset(
        """
        .git .hg .svn .jj .bzr _darcs .pijul git-hooks .vs .nova .lapce .helix .vim .emacs.d .devcontainer .gitpod
        .run .settings .metals .externaltoolbuilders nbproject .github .gitlab .gitea .forgejo .circleci .buildkite
        .woodpecker .drone .teamcity .azure-pipelines .codefresh .semaphore .tekton .harness .trunk .ssh .gnupg .aws
        .kube .docker .config .cargo .yarn .mvn .bundle .direnv .mise .ipython .jupyter .terraform .goose .factory
        .openhands .clinerules .roorules .rules .amp .warp .builds .buddy .zuul.d .jenkins .copr .spacelift .qlty .flox
        .coder .daytona .okteto .devfile .hooks .clj-kondo .lein .ammonite .taskmaster .specify .skills .plandex .devin
        .droid .jules .vibe .sourcegraph .codegpt .tabby .pearai .xcodebuildmcp
        """.split()
    ),
    files=frozenset(
        """
        claude.md claude.local.md agents.md agents.override.md agents.local.md agent.md gemini.md qwen.md codex.md
        crush.md warp.md copilot-instructions.md .cursorrules .windsurfrules .roomodes .goosehints .aiderrules
        .aider.conf.yml .aider.conf.yaml crush.json .crush.json mcp_config.json claude_desktop_config.json skill.md
        .openhands_instructions .augment-guidelines .coderabbit.yaml .coderabbit.yml .sweep.yaml sweep.yaml
        .mentat_config.json firebender.json omnisharp.json .formatter.exs .credo.exs .iex.exs .ocamlinit .ghci .lintr
        .user.ini .scalafix.conf ansible.cfg .ansible.cfg ipython_config.py .build.yml buddy.yml renovate.json
        renovate.json5 mergify.yml .mergify.yml .hound.yml screwdriver.yaml zuul.yaml .zuul.yaml packit.yaml
        .packit.yaml atlantis.yaml heroku.yml railway.toml railway.json nixpacks.toml captain-definition now.json
        devfile.yaml .devfile.yaml devbox.json devcontainer-feature.json hk.pkl .hk.pkl rusty-hook.toml .rusty-hook.toml
        captainhook.json grumphp.yml grumphp.yml.dist .release-it.json .bumpversion.toml .bumpversion.cfg
        .goreleaser.yml .goreleaser.yaml wezterm.lua kitty.conf .projectile neoconf.json .replit replit.nix replit.md
        .lazy.lua .neoconf.json .emacs .local.vimrc .vsls.json .luarc.json .luarc.jsonc .project .ccls .clangd
        .vimspector.json .ycm_extra_conf.py init.el early-init.el init.vim .directory autorun.inf desktop.ini .login
        .logout .xsession .gdbinit .lldbinit .rprofile .renviron .rspec .pythonstartup startup.jl .tmux.conf
        .git-credentials .gitmodules .lfsconfig .netrc _netrc .mailcap .forward .rhosts .shosts crontab pip.conf
        pyrightconfig.json sitecustomize.py usercustomize.py .yarnrc.yml .simplecov .rubocop.yml .solargraph.yml
        .standard.yml .flake8 mypy.ini .mypy.ini phpstan.neon .php-cs-fixer.php .php-cs-fixer.dist.php .overcommit.yml
        prek.toml .tool-versions jenkinsfile netlify.toml vercel.json render.yaml fly.toml head config config.worktree
        commondir
        """.split()
    ),
    endings=(
        *(".pth", ".egg-link", ".desktop", ".service", ".timer", ".lnk", "-gdb.py", "-gdb.gdb", ".launch", ".scf"),
        *(".url", ".webloc", ".library-ms", ".searchconnector-ms", ".prompt.md", ".instructions.md", ".chatmode.md"),
        *(".agent.md", ".csproj.user", ".vcxproj.user"),
    ),
    name=re.compile(
        rf"[._][\w.-]*rc(?:\.local)?|\.[\w-]+rc(?:\.local)?\.(?:{_CODE}|{_DATA}|lua|py|sh)|\.envrc\.\w+"
        rf"|(?:[\w-]+\.)?(?:{_BARE_RC})rc|pylintrc\.toml|.+\.sublime-\w+|\.sublime-\w+|\.xsession\w*"
        rf"|(?:eslint|prettier|stylelint|babel|lint-staged|commitlint|release)\.config\.(?:{_CODE}|{_DATA})"
        rf"|\.?(?:simple-git-hooks|nano-staged|changelog\.config)\.(?:{_CODE}|{_DATA})|\.?cz\.{_DATA}"
        rf"|jupyter_\w+_config\.(?:py|json)|codeship-\w+\.ya?ml|devenv(?:\.local)?\.(?:nix|ya?ml)"
        rf"|\.markdownlint(?:-cli2)?\.{_CODE}"
        rf"|\.pnp(?:\.loader)?\.{_CODE}|\.?pnpm?file\.{_CODE}|\.?(?:mise|rtx)(?:\.[\w-]+)*\.toml"
        rf"|\.?opencode\.jsonc?|\.?devcontainer\.json|\.gitpod\.(?:ya?ml|dockerfile)"
        rf"|\.pre-commit-(?:config|hooks)\.ya?ml|\.?lefthook(?:-local)?\.{_DATA}"
        rf"|[\w.-]*\.gitlab-ci[\w-]*\.ya?ml|jenkinsfile[.\w-]*(?<!\.md)|(?:azure|bitbucket)-pipelines[\w-]*\.ya?ml"
        rf"|\.?(?:travis|appveyor|drone|woodpecker|cirrus|wercker|shippable|bitrise|codemagic|scrutinizer|readthedocs)"
        rf"\.(?:{_DATA}|star|jsonnet)|(?:cloudbuild|buildspec|appspec)\.{_DATA}"
    ),
)
"""Other files that some program runs or obeys by their names, instructions for agents among them. `head` and `config`
are those of a bare repository: git obeys such a `config` in any folder beside `objects` and `refs`.
"""

BUILDS = Names(
    files=frozenset(
        """
        setup.py package.json composer.json gradlew gradlew.bat mvnw mvnw.cmd gradle-wrapper.properties
        maven-wrapper.properties rakefile gemfile guardfile capfile fastfile podfile vagrantfile dangerfile noxfile.py
        fabfile.py dodo.py sconstruct sconscript wscript jakefile binding.gyp build.rs build.zig build.xml build.sbt
        mix.exs rebar.config tox.ini pytest.ini .pytest.ini procfile earthfile tiltfile flake.nix shell.nix devenv.nix
        directory.build.props directory.packages.props directory.build.rsp msbuild.rsp global.json dotnet-tools.json
        nuget.config build.cake hatch_build.py pavement.py conanfile.py xmake.lua premake5.lua magefile.go cakefile
        thorfile steepfile berksfile puppetfile appraisals brewfile mintfile setup.hs shakefile.hs build.pl makefile.pl
        rebar.config.script robofile.php castor.php .castor.php deploy.php deployer.php rector.php envoy.blade.php
        _targets.r makevars build.sc build.mill build.boot project.clj deps.edn bb.edn shadow-cljs.edn .sbtopts .jvmopts
        .mill-jvm-opts .mill-opts mill millw amper amper.bat kobaltw pants .bazelversion .busted .air.toml default.nix
        package.swift truffle-config.js gatsby-config.js gatsby-config.ts gatsby-node.js gatsby-node.ts
        ember-cli-build.js .mega-linter.yml bunfig.toml rust-toolchain rust-toolchain.toml init.lua action.yml
        action.yaml
        """.split()
    ),
    endings=(".mk", ".rake", ".gemspec", ".podspec", ".just", ".targets", ".xcscheme", ".init.gradle"),
    path=re.compile(
        r"(?:^|/)(?:tools/bazel(?:\.(?:sh|bat|exe|rc))?|gradle/wrapper/[\w.-]+\.jar|project/[\w-]+\.sbt|deps/build\.jl)$"
    ),
    name=re.compile(
        r"(?:gnu|bsd)?makefile(?:\.(?:am|in|inc|win))?|(?:build|settings|init)\.gradle(?:\.kts)?|\.?justfile"
        rf"|taskfile(?:\.dist)?\.ya?ml|(?:gulp|grunt)file(?:\.babel)?\.{_CODE}"
        r"|(?:webpack|rollup|vite|vitest|jest|next|nuxt|svelte|astro|tailwind|postcss|karma|cypress|playwright|metro"
        rf"|craco|esbuild|tsup|vue|wdio|rspack|rsbuild|hardhat|forge|electron\.vite|snowpack|unocss|uno|windi|ava|remix"
        rf"|farm|tsdown|unbuild|drizzle|vitest\.\w+|jest\.\w+|playwright-ct|bundlesize|size-limit)"
        rf"\.config\.{_CODE}|(?:protractor|nightwatch|codecept|stryker|karma)\.conf\.{_CODE}|(?:plop|knex)file\.{_CODE}"
        rf"|(?:vitest|jest)[.-](?:workspace|setup|global-setup|environment)\.{_CODE}|wallaby\.{_CODE}|brocfile\.{_CODE}"
    ),
)
"""Files that only a build or a test run of the project executes, which people start."""

_TEXT = r"(?:txt|json|ya?ml|toml|ini|cfg|conf|csv|env|properties|xml|plist|tfvars|db|sqlite|kdbx|php)"
_WORDS = (
    r"(?:secrets?|credentials?|creds|passw(?:or)?ds?|passwd|(?:private|secret|api|access)[_-]?keys?"
    r"|service[_-]?accounts?(?:[_-]?keys?)?|token(?=\.)|tokens(?=\.))"
)

_PRODUCTS = "github|gh|gitlab|npm|pypi|slack|openai|anthropic|gemini|claude|aws|gcp|azure|docker|heroku|stripe|mysql|db"

SECRETS = Names(
    folders=frozenset(
        """
        .git .ssh .aws .gnupg .kube .azure .docker .gcloud .password-store .oci .aliyun .bluemix .talos .cloudflared
        .ngrok2 .huggingface .kaggle .snowflake .snowsql .terraform.d .electrum .bitcoin .tsh .minikube .globus
        """.split()
    ),
    files=frozenset(
        """
        .netrc _netrc .npmrc .yarnrc.yml .pypirc .pgpass pgpass.conf .my.cnf .mylogin.cnf .envrc .htpasswd .htdigest
        .git-credentials .dockercfg .dockerconfigjson .vault-token .terraformrc .s3cfg .boto .databrickscfg .snowsql
        .secrets .secret .credentials nuget.config settings.xml settings-security.xml hosts.yml hosts.yaml auth.json
        local.settings.json .dev.vars .flaskenv .vault_pass .vault_pass.txt vault_pass.txt .vault-pass rclone.conf
        htpasswd htdigest vault.yml vault.yaml shadow gshadow private.txt key.txt keys.txt wp-config.php id_rsa id_dsa
        id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk .rclone.conf boto.cfg .passwd-s3fs .smbcredentials
        wpa_supplicant.conf openvpn.conf tailscaled.state .authinfo .msmtprc .fetchmailrc .mbsyncrc .isyncrc
        .offlineimaprc .muttrc passwd.client dovecot-sql.conf.ext .sentryclirc sentry.properties k3s.yaml talosconfig
        ngrok.yml ngrok.yaml kaggle.json .modal.toml .token .cvspass .p4tickets p4tickets.txt logins.json key3.db
        key4.db signons.sqlite cookies.sqlite cookies.txt wallet.dat bitcoin.conf lnd.conf cwallet.sso
        .google_authenticator rootkey.csv credentials.tfrc.json terraform.rc acme.json connectionstrings.config
        connectionstrings.json config.inc.php localsettings.php local_settings.py fish_history .smbcred .ftpconfig
        .ftppass ws_ftp.ini winscp.ini sftp.json sftp-config.json .remote-sync.json .pg_service.conf pg_service.conf
        my.cnf .ldaprc .erlang.cookie rabbitmq.erlang.cookie orapwd tnsnames.ora sqlnet.ora listener.ora
        googleservice-info.plist google-services.json azureauth.json azureprofile.json .s3cmd s3cfg .boto3 pip.ini
        .condarc .pnpmrc auth.toml .surge keyfile mongo-keyfile pwfile passwdfile pass.txt pwd.txt pw.txt basicauth
        basic-auth.txt auth.txt vpn-auth.txt jwt.txt bearer.txt otp.txt 2fa.txt totp.txt cookiejar cookie.txt ssh_key
        sshkey ssh-key.txt parameters.yml parameters.yaml arduino_secrets.h wifi_credentials.h secrets.h
        secrets.xcconfig vault-init.json vault.json .env.php trustdb.gpg pubring.kbx local.properties storagestate.json
        hostapd.conf sssd.conf slapd.conf identity.age .dropbox_uploader .tfrc .git-crypt-key git-crypt.key
        filezilla.xml sitemanager.xml recentservers.xml keystore.json msal_token_cache.json msal_token_cache.bin .psk
        .vaultpass .vaultpassword .rediscli_auth .wgetrc .curlrc .renviron .lesshst .transifexrc .doppler.yaml .pw
        .jira.yml token.pickle keys.json pip.conf
        """.split()
    ),
    endings=(
        *(".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".p8", ".kdb", ".tfstate", ".tfvars"),
        *(".tfvars.json", ".kubeconfig", ".asc", ".gpg", ".pgp", ".ovpn", ".mobileprovision", ".agekey"),
        *(".publishsettings", ".nmconnection", ".keyfile", ".snk", ".session", ".storagestate.json", ".sec"),
        *(".pkrvars.hcl", ".pkrvars.json", ".pem.txt", ".key.txt", ".yml.enc", ".yaml.enc", ".json.enc", ".tfbackend"),
        *(".pkcs12", ".bks", ".jceks", ".keytab", ".macaroon", ".priv", ".psk", ".htpasswd", ".wgconf"),
    ),
    name=re.compile(
        r"\.env(?:\.(?!(?:.*\.)?(?:example|sample|template|dist|defaults?)$).+)?|.+\.env"
        r"|\.?env\.(?:prod\w*|dev\w*|stag\w*|test\w*|local|live)|\.env[_-](?!example|sample|template).+"
        r"|\.dev\.vars\.(?!example$)[\w-]+|(?:[\w-]+[._-])?(?:private|priv)(?:[_-]?key)?\.(?:txt|json|jwk)"
        rf"|(?:\.?[\w-]*[._-])?{_WORDS}(?:\.{_TEXT})*|\.\w+_history|kubeconfig(?:\.\w+)?|kube\.config"
        r"|(?:application|bootstrap)-(?:prod\w*|stag\w*|live|local|secrets?|dev\w*|uat|qa)\.(?:ya?ml|properties)"
        r"|config[.-](?:prod\w*|stag\w*|live|local|private|secrets?)\.(?:json5?|ya?ml|toml|ini|php|py)|env\.(?:json|ya?ml)"
        r"|kube-?config[_-][\w-]+(?:\.ya?ml)?|kube-config|pulumi\.[\w-]+\.ya?ml|web\.(?:release|prod\w*)\.config"
        r"|htpasswd\.(?!md$|rst$)\w+|private[_-]?key\.der|wpa_supplicant[\w-]*\.conf|logins?\.csv|(?:sops[._-])?age(?:[._-]keys?)?\.txt|(?=.*(?:token|key|pass"
        # The words of a command are looked up here too, so that plain names of variables (`user_token`) are no files.
        rf"|pwd|secret|private|auth))(?:[\w-]*(?:{_PRODUCTS})[.-](?:token|pass(?:word|wd)?|pwd)s?"
        rf"|[\w-]*(?:{_PRODUCTS})[._-]?(?:key|secret|pass|pwd)s?\.txt|\.\w+[._-](?:token|passw(?:or)?d|pass|pwd|secret)"
        r"|(?:unseal|recovery|sops|age|encryption|signing|master)[._-]?(?:age)?[._-]?keys?\.(?:txt|json)"
        r"|[\w.-]*secrets?[.-](?:enc|prod\w*|dev\w*|stag\w*|local|live)\.(?:ya?ml|json|toml|hcl)|secrets?\.hcl"
        r"|(?:rsa|dsa|ecdsa|ed25519)[._-]private|private[._-](?:rsa|dsa|ecdsa|ed25519|jwks?\.json|jwks?)"
        r"|\w*passwords?\.(?:xlsx?|docx?|ods|lst|md5)|[\w.-]*mcp[._-]?auth\.json|\w+[._-]service[_-]key\.json)"
        r"|[\w.-]+[._-]keys?\.json|terraform\.tfstate\.[\w.-]+"
        r"|wg[\w-]*\d\.conf|wg[_-][\w.-]+\.conf|(?:[\w-]+[._-])?wireguard[\w.-]*\.conf"
        r"|(?:key|keystore|signing|(?:release|upload)[._-]?(?:keystore|signing))\.properties"
        r"|appsettings\.(?!(?:example|sample|template|schema|dist)\.)[\w.-]+\.json"
        r"|[\w.-]*firebase-adminsdk[\w.-]*\.json|(?:[\w-]+[._-])?service[_-]?account[\w-]*\.json"
        r"|client_secrets?[\w.-]*\.json|(?:[\w-]+[._-])?oauth2?(?:[._-]?(?:creds|tokens?))?\.json"
        r"|\.?(?:[\w-]+[._-])?vault[_-]pass(?:word)?(?:[_-]file)?(?:\.txt)?|pass(?:word|wd)[_-]?file"
        r"|[\w-]+[_-](?:rsa|dsa|ecdsa|ed25519)|(?:[\w-]+[_-])?deploy[_-]key|ssh_host_\w+_key|id_(?:rsa|dsa|ecdsa|ed25519)_\w+"
        r"|(?:[\w-]+[_-])?(?:mnemonic|seed[_-]?phrase|(?:recovery|backup|scratch)[_-]?(?:codes?|phrase|key))s?\.txt"
        r"|utc--[\w.-]+|krb5cc\w*|jfrog-cli\.conf(?:\.v\d+)?|jpserver-\d+\.json|frp[cs]\.(?:ini|toml|ya?ml)"
    ),
    path=re.compile(
        r"(?:^|/)(?:wireguard/[\w.-]+\.conf$|\.(?:gradle/gradle\.properties|bundle/config|dbt/profiles\.yml)$"
        r"|\.subversion/auth/|playwright/\.auth/|\.auth/[\w.-]+\.json$"
        r"|\.(?:netlify|fly|railway)/config\.(?:json|yml)$|\.idea/(?:datasources(?:\.local)?|webservers)\.xml$"
        r"|\.jupyter/jupyter_\w+_config\.\w+$|\.supabase/access-token$|\.gitlab-runner/config\.toml$|\.wrangler/config/"
        r"|\.weechat/sec\.conf$|\.github/token$|group_vars/\w+/vault|app/etc/env\.php$"
        r"|sites/default/settings(?:\.local)?\.php$|config/(?:prod\w*|stag\w*)\.(?:json|ya?ml)$|freeradius/clients\.conf$"
        r"|kubernetes/(?:admin|kubelet|scheduler|controller-manager)\.conf$|huggingface/token$"
        r"|\.config/(?:gh|hub|glab-cli|doctl|op|gcloud|stripe|configstore|github-copilot|rclone|sops|wandb)(?:/|$))"
    ),
)
"""Files that usually contain keys or passwords."""
