"""Tables of names: what something runs later, what holds keys, what is harmless; and every disguise of a name."""

# ruff: noqa: SIM905 - word lists read better as text

from __future__ import annotations

import unicodedata
from itertools import product

import pytest

from codeagent_lsp.workspace.files.sensitive import fold, holds_secrets, is_settings, only_builds_run, runs_later

RUN_LATER = """
.git .git/HEAD .git/config .git/hooks/pre-commit .git/hooks/post-checkout .git/info/exclude .git/info/attributes
.git/modules/lib/config .git/refs/heads/main lib/.git lib/.git/config deep/er/.git/hooks/update .hg/hgrc .svn/entries
.jj/repo/config .githooks/pre-push .husky/pre-commit .husky/_/husky.sh hooks/pre-receive hooks/commit-msg hooks/update
.hooks/post-merge
.vscode .vscode/settings.json .vscode/tasks.json .vscode/launch.json .vscode/extensions.json .vscode/mcp.json
pkg/.vscode/settings.json .vs/launch.vs.json .idea/workspace.xml .idea/runConfigurations/a.xml .fleet/run.json
.nova/Configuration.json .zed/settings.json .zed/tasks.json .kiro/settings/mcp.json .kiro/hooks/a.json .cursor/mcp.json
.cursor/rules/a.mdc .windsurf/workflows/a.md .claude/settings.json .claude/settings.local.json .claude/hooks/a.sh
.codeagent/permissions.toml .codeagent/skills/a/SKILL.md .codex/config.toml .gemini/settings.json .continue/config.yaml
.mcp.json mcp.json app.code-workspace app.sublime-project .helix/config.toml .helix/languages.toml .nvim/init.lua
.vim/vimrc .nvim.lua .nvimrc .exrc .vimrc .gvimrc .lvimrc .local.vimrc .lazy.lua .neoconf.json .emacs .emacs.d/init.el
.dir-locals.el .dir-locals-2.el .devcontainer/devcontainer.json .devcontainer/Dockerfile .devcontainer.json
.github/workflows/ci.yml .github/actions/a/action.yml .github/dependabot.yml .gitlab-ci.yml .gitlab/ci/a.yml
.gitea/workflows/a.yml .forgejo/workflows/a.yml .circleci/config.yml .buildkite/pipeline.yml .woodpecker.yml
.woodpecker/a.yml .drone.yml .travis.yml .appveyor.yml appveyor.yml azure-pipelines.yml bitbucket-pipelines.yml
cloudbuild.yaml .cirrus.yml Jenkinsfile ci/Jenkinsfile .teamcity/settings.kts .pre-commit-config.yaml lefthook.yml
.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .login .logout .zshrc .zshenv .zprofile .zlogin
.zlogout .cshrc .tcshrc .kshrc .inputrc .screenrc .tmux.conf .xprofile .xsession .xsessionrc .xinitrc .pam_environment
.config/fish/a.fish .config/autostart/a.desktop .config/systemd/user/a.service a.desktop unit.service crontab
.ssh/authorized_keys .ssh/config .ssh/rc .gnupg/gpg.conf .aws/config .kube/config .docker/config.json
.gitconfig .gitmodules .git-credentials .npmrc .yarnrc .yarnrc.yml .yarn/releases/yarn.cjs .pnp.cjs .pnpmfile.cjs
.pypirc pip.conf .netrc _netrc .wgetrc .curlrc .ripgreprc .ackrc .psqlrc .gdbinit .lldbinit .Rprofile .Renviron
.pythonstartup .ipython/profile_default/startup/a.py .jupyter/jupyter_config.py .cargo/config.toml .mvn/jvm.config
.bundle/config .direnv/a .envrc .tool-versions .mise.toml mise.toml .mise/config.toml .clangd pyrightconfig.json
.pylintrc .eslintrc .babelrc .mocharc .nycrc _vimrc
sitecustomize.py usercustomize.py lib/sitecustomize.py a.pth site-packages/zz.pth conftest.py src/conftest.py
CLAUDE.md CLAUDE.local.md pkg/CLAUDE.md AGENTS.md GEMINI.md .github/copilot-instructions.md .cursorrules .windsurfrules
.clinerules .clinerules/a.md .roomodes .roo/mcp.json .goosehints .qwen/settings.json .agent/x .opencode/plugin/x.js
opencode.json crush.json .crush.json .junie/mcp/mcp.json .trae/mcp.json .kilocode/mcp.json .aider.conf.yml .aiderrules
.eslintrc.js .eslintrc.json .eslintrc.cjs eslint.config.js eslint.config.mts .prettierrc.mjs .stylelintrc.yaml
.huskyrc.js .lintstagedrc.json lint-staged.config.js .commitlintrc.ts .simple-git-hooks.cjs lefthook-local.yml
lefthook.toml .git-hooks/pre-commit git-hooks/pre-commit .overcommit.yml .rubocop.yml .solargraph.yml pylintrc .flake8
mypy.ini .luarc.json .luarc.jsonc .vsls.json .project .settings/x.prefs .run/a.run.xml .ccls .vimspector.json
x.sublime-build .sublime-build .ycm_extra_conf.py user.bazelrc pdbrc bashrc config.fish .envrc.local
.mise.local.toml mise.dev.toml .pnp.loader.mjs .pnpmfile.mjs .gitpod.yml .gitlab-ci-deploy.yml azure-pipelines-pr.yml
Jenkinsfile.release buildspec.yml netlify.toml vercel.json .cirrus.star .drone.jsonnet .codefresh/x.yml .semaphore/a.yml
.readthedocs.yaml .bzr/x _darcs/prefs/x autorun.inf .directory x.lnk a.timer .rspec libfoo-gdb.py .terraform/a/terraform
.lefthook/pre-commit/a.sh .theia/tasks.json pnpfile.js pnpmfile.cjs
docs/config docs/HEAD fixtures/repo.git/config fixtures/repo.git/HEAD a/commondir a/config.worktree
CON con.txt PRN AUX aux.py NUL nul.log COM1 com9.txt LPT1 lpt3.dat
.cz.toml cz.toml .release-it.json jupyter_notebook_config.py ipython_config.py .lein/profiles.clj .clj-kondo/config.edn
.clj-kondo/hooks/a.clj .goreleaser.yml .iex.exs .formatter.exs .credo.exs .ghci .ocamlinit .user.ini grumphp.yml
captainhook.json .lintr devbox.json .builds/a.yml .build.yml buddy.yml .buddy/a.yml renovate.json mergify.yml
.mergify.yml .hound.yml codeship-services.yml atlantis.yaml screwdriver.yaml now.json heroku.yml railway.toml
railway.json nixpacks.toml captain-definition a.launch foo.vcxproj.user foo.csproj.user omnisharp.json .lite_project.lua
.lvim/config.lua coc-settings.json .projections.json .tasks .projectile neoconf.json .tmuxinator.yml .tmuxp.yaml
.tmuxp.yml .wezterm.lua wezterm.lua kitty.conf .autoenv .autoenv.zsh .env.zsh .autoenv.leave .shadowenv.d/a.lisp
.smartcd bash_enter bash_leave .smartcd/x xonsh.rc Microsoft.PowerShell_profile.ps1 profile.ps1 Profile.ps1
.elvish/rc.elv rc.elv .kilocodemodes .augment-guidelines .qoder/x .codebuddy/x .lingma/x .iflow/x .zencoder/x .pearai/x
.tabnine/x .sourcegraph/x foo.prompt.md foo.instructions.md foo.chatmode.md foo.agent.md SKILL.md .skills/x
skills/a/SKILL.md mcp-config.json mcp.config.json mcp_settings.json cline_mcp_settings.json .claude.json .rulesync/x
.ruler/x .plandex/x .devin/x .codegpt/x .mentat_config.json .sweep.yaml sweep.yaml .coderabbit.yaml .tabby/x .droid/x
.serena/project.yml .serena/x .taskmaster/x .specify/x .openhands_instructions .jules/x .firebender/x firebender.json
.xcodebuildmcp/x .vibe/x .rovodev/x .copilot/mcp-config.json .idx/dev.nix .codesandbox/tasks.json .devfile.yaml
devfile.yaml .devfile/x .coder/x .daytona/x .okteto/x .hooks/x devcontainer-feature.json foo.url foo.scf foo.webloc
.qlty/qlty.toml .overcommit/x hk.pkl .hk.pkl .cargo-husky/hooks/x .rusty-hook.toml rusty-hook.toml .captainhook/x
nano-staged.js .nano-staged.cjs .nano-staged.json .bumpversion.toml changelog.config.js .ansible.cfg ansible.cfg
.scalafix.conf .ammonite/predef.sc
""".split()

HARMLESS = """
README.md LICENSE Dockerfile setup.cfg pyproject.toml package-lock.json tsconfig.json Cargo.toml go.mod pom.xml
CMakeLists.txt .gitignore .gitattributes .gitkeep .editorconfig .dockerignore
.prettierignore .codeagentignore .clang-format .nojekyll .python-version .coveragerc.md
src/main.py src/app.ts lib/index.js cmd/main.go src/lib.rs app/models/user.rb index.php main.c main.cpp Main.java
tests/conftest.py pkg/tests/unit/conftest.py test/conftest.py
tests/test_git.py src/git/config.py git/head.py github/api.py
vscode/extension.ts docs/.keep docs/hooks.md src/hooks/useState.ts hooks/index.ts hooks/readme.md components/update.tsx
src/config.py config/settings.yml config/database.yml settings.json tasks.json launch.json console.py contact.md
auxiliary.py nullable.ts common.c com.py com10.txt lpt.py prnt.c profile.py login.ts rc.py arc.py search.rc.md
mcp.py my-mcp.json notes.code-workspace.md path.pth.txt desktop.md service.py jenkins.md crontab.md travis.md
claude.py docs/claude.txt agents.py src/agents/main.py rules.md eslint.md prettierrc.md src/app.config.ts config.ts
config.json heads.py overhead configure refs/a.md objects/a.py src/run.py run/a.py settings/a.py package.md makefile.md
setup.md setup.ts build.py gradle.md makefiles.py linkage.txt travis.rb drone.py opencode.md
site_customize.py customize.py netrc.py vimrc.md bashrc.txt envrc.md exrc.c git.md src.git.d/a.py a.git/b
url.py launch.py service.url.ts prompt.md instructions.md agent.ts skills.md skill.ts cz.md targets.py build.ts mill.py
pants.md wezterm.md tasks.md project.clj.md
""".split()

BUILDS = """
tools/bazel sub/tools/bazel
Makefile makefile GNUmakefile Makefile.am rules.mk setup.py package.json pkg/package.json composer.json build.gradle
build.gradle.kts settings.gradle gradlew gradlew.bat mvnw Taskfile.yml Taskfile.dist.yaml justfile .justfile Rakefile
Gemfile noxfile.py fabfile.py gulpfile.js Gruntfile.ts webpack.config.js vite.config.ts jest.config.cjs build.rs
binding.gyp tox.ini pytest.ini flake.nix Vagrantfile init.lua rust-toolchain.toml action.yml
.bazelversion tools/bazel.rc conanfile.py premake5.lua xmake.lua hardhat.config.js truffle-config.js gatsby-config.js
gatsby-node.js remix.config.js electron.vite.config.ts forge.config.js ember-cli-build.js snowpack.config.js
windi.config.ts unocss.config.ts ava.config.js vitest.workspace.ts vitest.setup.ts jest.setup.js wallaby.js
stryker.conf.js protractor.conf.js nightwatch.conf.js codecept.conf.js karma.conf.js plopfile.js Cakefile brocfile.js
Thorfile Berksfile Puppetfile Appraisals Steepfile pavement.py hatch_build.py pants gradle/wrapper/gradle-wrapper.jar
project/plugins.sbt build.sc .mill-jvm-opts mill millw deps.edn project.clj shadow-cljs.edn bb.edn build.boot
magefile.go .air.toml Package.swift Mintfile Brewfile rebar.config.script Setup.hs Shakefile.hs Build.PL Makefile.PL
rector.php deployer.php deploy.php RoboFile.php Envoy.blade.php castor.php .castor.php _targets.R src/Makevars
deps/build.jl default.nix foo.targets foo.sln.targets Directory.Packages.props before.foo.sln.targets
Directory.Build.rsp MSBuild.rsp nuget.config build.cake global.json dotnet-tools.json foo.xcscheme .busted
.mega-linter.yml .sbtopts .jvmopts kobaltw amper amper.bat
""".split()

SECRETS = """
.env .env.local .env.production .env.development.local prod.env config/staging.env .envrc .netrc _netrc .npmrc .pypirc
.yarnrc.yml .pgpass .my.cnf .htpasswd .git-credentials .dockercfg .dockerconfigjson .vault-token .terraformrc .s3cfg
.boto kubeconfig dev.kubeconfig credentials credentials.json secrets.json secrets.yml config/secrets.yaml secrets.toml
terraform.tfvars terraform.tfstate id_rsa id_dsa id_ecdsa id_ed25519 id_ed25519_sk keys/id_rsa a.pem server.key a.p12
a.pfx a.jks a.keystore a.kdbx a.ppk a.p8 a.asc a.gpg vpn.ovpn .ssh/config .ssh/known_hosts .aws/credentials
terraform.tfstate.backup prod.auto.tfvars gcp-key.json env.prod auth.json local.settings.json .databrickscfg .secrets
server.key.bak .env~ ..env.swp .env.bak .env.old~ #id_rsa# hosts.yml .config/gh/hosts.yml .git/config .git/HEAD
application_default_credentials.json nuget.config .m2/settings.xml group_vars/all/vault.yml credentials.csv
aws_credentials kubeconfig.yaml shadow private.txt keys.txt service-account-key.json my-secrets.yml .bash_history
wg0.conf wg1.conf wg-home.conf wireguard.conf etc/wireguard/home.conf my-wireguard-peer.conf .rclone.conf rclone.conf
keystore.properties key.properties signing.properties release-signing.properties .gradle/gradle.properties
appsettings.Development.json appsettings.Production.json appsettings.local.json .pgpass .my.cnf boto.cfg client.ovpn
openvpn.conf users.htpasswd a-firebase-adminsdk-x1y2-0a1b.json serviceAccount_prod.json service-account-2.json
client_secret_1.apps.googleusercontent.com.json oauth.json oauth_creds.json .authinfo .msmtprc .smbcredentials
wpa_supplicant.conf sitemanager.xml .config/gh/hosts .config/glab-cli/config.yml .oci/config .cloudflared/a.json
ngrok.yml kubernetes/admin.conf k3s.yaml talosconfig .ansible_vault_pass vault-password-file deploy_key github_rsa
ssh_host_ed25519_key id_ed25519_work x.pkcs12 x.bks x.keytab logins.json key4.db cookies.txt wallet.dat
UTC--2020-01-01T00-00-00.0Z--ab admin.macaroon mnemonic.txt seed_phrase.txt github-recovery-codes.txt rootkey.csv
msal_token_cache.json credentials.tfrc.json connectionStrings.config config.inc.php local_settings.py fish_history
huggingface/token kaggle.json .dbt/profiles.yml .p4tickets frpc.toml rsa_key.priv office.psk acme.json passwordfile
db_password.txt api_keys.txt tokens.json service_account.json .htdigest wp-config.php creds.json .secrets.toml
.vaultpass vault.kdb secret_key.txt private-key.der .rediscli_auth .wgetrc .curlrc .Renviron .idea/dataSources.xml
.idea/dataSources.local.xml .idea/webServers.xml .jupyter/jupyter_server_config.json .supabase/access-token
.gitlab-runner/config.toml .wrangler/config/default.toml .weechat/sec.conf token.pickle keys.json .doppler.yaml
.dev.vars .dev.vars.production .flaskenv .vault_pass rclone.conf htpasswd jwt_private.txt private.jwk
.gnupg/secring.gpg .kube/config .azure/accessTokens.json .docker/config.json home/.ssh/id_rsa
application-prod.yml application-production.properties application-prod.yaml application-local.yml bootstrap-prod.yml
config/credentials.yml.enc google-services.json GoogleService-Info.plist env.json env.yaml my.cnf github-token gh.token
.github_token .gh_token npm-token slack-token bearer.txt jwt.txt secrets.enc.yaml secrets.prod.json passwords.xlsx
passwords.docx logins.csv password.lst pw.txt pass.txt pwd.txt mysql.pass dbpass.txt vault.json .vault_token
vault-init.json unseal_keys.txt mongod.keyfile keyfile mongo-keyfile rabbitmq.erlang.cookie .erlang.cookie 2fa.txt
totp.txt otp.txt azureauth.json azureProfile.json prod.publishsettings site.PublishSettings .netlify/config.json
.fly/config.yml .railway/config.json .surge backend.tfbackend secrets.hcl secrets.auto.pkrvars.hcl prod.pkrvars.hcl
pulumi.prod.yaml Pulumi.prod.yaml age-key.txt identity.age sops-age.txt kubeconfig-prod kube-config kubeconfig_prod.yml
.smbcred .s3cmd s3cfg .boto3 pip.ini .condarc .pnpmrc auth.toml poetry/auth.toml .gitlab-token .travis.token
.github/token parameters.yml parameters.yaml app/etc/env.php config.local.php sites/default/settings.php
Web.Release.config local.properties sign.snk strongname.snk env.yml secrets.dev.yml config.prod.json
config.production.json config/prod.json config/production.json config.local.json sftp.json .vscode/sftp.json .ftpconfig
sftp-config.json .remote-sync.json .ftppass ws_ftp.ini WinSCP.ini private-jwks.json signify.sec release.sec pubring.kbx
.pem.txt rsa_private rsa.private ssh_key sshkey ssh-key.txt openai_key.txt anthropic_key.txt secrets.h arduino_secrets.h
wifi_credentials.h secrets.h.bak Secrets.xcconfig cookie.txt cookiejar auth.storageState.json storageState.json
playwright/.auth/user.json .auth/user.json mcp-auth.json telegram.session bot.session pyrogram.session .pg_service.conf
pg_service.conf tnsnames.ora sqlnet.ora listener.ora orapwd .ldaprc slapd.conf sssd.conf freeradius/clients.conf
htpasswd.prod basic-auth.txt basicauth auth.txt pwfile wpa_supplicant-wlan0.conf hostapd.conf
NetworkManager/system-connections/home.nmconnection home.nmconnection vpn-auth.txt
""".split()

NO_SECRETS = """
.env.example .env.sample .env.template .env.dist .env.defaults .env.default .env.local.example src/env.py env.ts
env.py env.d.ts envs.md authors.json auth.ts settings.py settings.json hosts.txt vaults.md private.py shadow.css
appsettings.json appsettings.example.json appsettings.template.json gradle.properties application.properties
messages.properties strings.properties primary-key.properties wg.conf wgpu.toml wg_config.py nginx.conf redis.conf
peer.py wireguard.md wireguard.go rsa ed25519 rsa.py rsa.md rsa.go deploy_key.pub github_rsa.pub ssh_host_rsa_key.pub
oauth.py oauth.ts auth.py cookies.py cookies.js service_account.py serviceAccount.ts firebase.json firebase-admin.ts
keystore.ts keystore.go macaroon.py wallet.py mnemonic.py seed.sql seed.txt backup.txt recovery.md vault_pass.py
config.json config.yml database.yml token_utils.py tokenizer.json tokenizer_config.json special_tokens_map.json
acme.py profiles.yml wireguard/main.go kubernetes/app.yaml gradle/wrapper/gradle-wrapper.properties Cookies.tsx
logins.py key.py admin.conf.md frpc.go client.py client_secret.py shadow.py token.py tokens.ts credentials.go
passwords.md secrets.md keys.md keys.go history.md terraform.tf key.json.md environment.yml id_rsa.pub id_ed25519.pub
keys.py monkey.py keyboard.ts pem.md test_pem.py secrets.py secret_santa.py credentials.py docs/credentials.md
password.ts tokens.py kube.py aws.py ssh.go gpg.md README.md main.tf variables.tf
user_token csrf_token github_token npm_token test_token access_token password_field aws_key gh-pages example.yml
application.yml
application-test.yml bootstrap.js author.txt compass.txt passes.txt token_pass.py keyfile.py config.prod.md
prod.config.ts session.ts
""".split()


def parts(name: str) -> list[str]:
    return name.split("/")


def test_the_tables_are_large_enough_and_say_nothing_twice() -> None:
    assert len(RUN_LATER) == len(set(RUN_LATER)) >= 150
    assert len(HARMLESS) == len(set(HARMLESS)) >= 60
    assert not set(RUN_LATER) & set(HARMLESS)


@pytest.mark.parametrize("name", RUN_LATER)
def test_asks(name: str) -> None:
    assert runs_later(parts(name))
    assert runs_later(parts(name.upper()))
    assert runs_later(parts(name.title()))


@pytest.mark.parametrize("name", HARMLESS)
def test_does_not_ask(name: str) -> None:
    assert not runs_later(parts(name))
    assert not runs_later(["src", *parts(name)])


@pytest.mark.parametrize("name", BUILDS)
def test_what_builds_run_is_known_as_that(name: str) -> None:
    assert runs_later(parts(name)) and only_builds_run(parts(name))
    assert runs_later(parts(name.upper())) and only_builds_run(["sub", *parts(name)])
    assert not only_builds_run([".vscode", *parts(name)])
    assert not is_settings(parts(name))


@pytest.mark.parametrize("name", RUN_LATER)
def test_what_more_than_builds_run_is_not_known_as_that(name: str) -> None:
    assert not only_builds_run(parts(name))


def test_commands_do_not_write_settings_of_editors_agents_and_shells() -> None:
    for name in (
        ".vscode/tasks.json",
        ".idea/a.xml",
        ".BASHRC",
        "a/.mcp.json",
        ".opencode/a.js",
        ".git/hooks/pre-push",
    ):
        assert is_settings(parts(name)) and runs_later(parts(name))
    for name in ("Makefile", ".github/workflows/a.yml", "CLAUDE.md", "a.desktop", ".git/HEAD", ".vscode"):
        assert not is_settings(parts(name)) and runs_later(parts(name))


def test_an_empty_path_holds_nothing() -> None:
    assert not is_settings([]) and not only_builds_run([]) and not holds_secrets([])


@pytest.mark.parametrize("name", SECRETS)
def test_holds_secrets(name: str) -> None:
    assert holds_secrets(parts(name))
    assert holds_secrets(parts(name.upper()))
    assert holds_secrets(["some", "where", *parts(name)])


@pytest.mark.parametrize("name", NO_SECRETS)
def test_holds_no_secrets(name: str) -> None:
    assert not holds_secrets(parts(name))


# --- disguises


IGNORED = "\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u206a\ufeff\u00ad\u034f\ufe0f\ufe00"
FULL_WIDTH = {chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F) if chr(code) not in "./"}


@pytest.mark.parametrize("name", [".git", ".vscode", ".mcp.json", ".bashrc", ".env", "id_rsa", "Jenkinsfile"])
def test_ignored_characters_anywhere(name: str) -> None:
    for char, at in product(IGNORED, range(len(name) + 1)):
        disguised = name[:at] + char + name[at:]
        assert fold(disguised) == name.casefold(), ascii(disguised)
        assert runs_later([disguised]) or holds_secrets([disguised])


@pytest.mark.parametrize("name", [".git", ".vscode", ".mcp.json", ".bashrc", "conftest.py", "a.pth", "CON"])
@pytest.mark.parametrize("tail", [".", "..", " ", ". .", "::$DATA", ":stream", "::$INDEX_ALLOCATION", ":"])
def test_tails_that_windows_drops(name: str, tail: str) -> None:
    assert runs_later([name + tail])
    assert runs_later([f"{name}{tail}", "below"]) or not runs_later([name, "below"])


@pytest.mark.parametrize("name", [".git", ".vscode", ".bashrc", ".npmrc", "sitecustomize.py", "Jenkinsfile"])
def test_wide_and_odd_letters(name: str) -> None:
    wide = "".join(FULL_WIDTH.get(char, char) for char in name)
    assert wide != name and runs_later([wide])
    assert runs_later([unicodedata.normalize("NFD", name)])
    assert runs_later([name.replace("s", "\u017f").replace("k", "\u212a")])


@pytest.mark.parametrize("name", ["git~1", "GIT~1", "Git~2", "git~12"])
def test_short_names_of_git(name: str) -> None:
    assert fold(name) == ".git"
    assert runs_later([name, "config"])


@pytest.mark.parametrize(
    "char", ["\n", "\r", "\t", "\x1b", "\x7f", "\u2028", "\u2029", "\u202e", "\u200b", "\U000e0041"]
)
def test_a_name_that_shows_as_another_asks(char: str) -> None:
    assert runs_later([f"read{char}me.md"])
    assert runs_later([f"do{char}cs", "readme.md"])


@pytest.mark.parametrize(
    "name", ["日本語.md", "größe.py", "café.txt", "Ünïcode/файл.go", "emoji😀.ts", "ﬁle.py", "Σς.rs"]
)
def test_other_scripts_are_nothing_special(name: str) -> None:
    assert not runs_later(parts(name))
    assert not holds_secrets(parts(name))


def test_folding_is_stable() -> None:
    for name in (*RUN_LATER, *HARMLESS, *SECRETS):
        for part in parts(name):
            assert fold(fold(part)) == fold(part)
