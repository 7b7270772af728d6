"""Which files an import names, language by language, from the names of the files alone."""

from __future__ import annotations

import pytest

from codeagent_lsp.tools.code.imports import ImportTargets, resolved
from codeagent_lsp.tools.code.source import required

_LISTED = """
    app/__init__.py app/main.py app/models/__init__.py app/models/user.py app/types.pyi src/lib/tool.py
    web/index.ts web/util.ts web/view/index.tsx web/data.json web/types.d.ts web/old.js
    go/main.go go/pkg/a.go go/pkg/b.go go/pkg/b_test.go
    crate/src/lib.rs crate/src/net/mod.rs crate/src/net/tcp.rs crate/src/io.rs
    java/src/org/x/A.java java/src/org/x/B.java java/src/org/y/C.java
    c/main.c c/util.h c/include/lib/deep.h
    ruby/lib/tool.rb ruby/lib/tool/part.rb ruby/bin/run.rb
    php/src/Models/User.php php/src/Models/Post.php php/index.php php/boot.php
    sh/run.sh sh/lib/common.sh
    """
PATHS = frozenset(_LISTED.split())
FILES = ImportTargets(PATHS, {"go": "example.org/shop"})


@pytest.mark.parametrize(
    ("path", "line", "expected"),
    [
        ("app/main.py", "import app.models.user", "app/models/user.py"),
        ("app/main.py", "from app.models import user", "app/models/user.py"),
        ("app/main.py", "from app.models import User", "app/models/__init__.py"),
        ("app/main.py", "from app.models import User, user", "app/models/__init__.py app/models/user.py"),
        ("app/main.py", "from .models import user as u", "app/models/user.py"),
        ("app/models/user.py", "from .. import main", "app/main.py"),
        ("app/models/user.py", "from . import *", "app/models/__init__.py"),
        ("app/models/user.py", "from ..types import T", "app/types.pyi"),
        ("app/main.py", "import lib.tool", "src/lib/tool.py"),
        ("app/main.py", "import os.path", ""),
        ("web/index.ts", "import { a } from './util';", "web/util.ts"),
        ("web/index.ts", "import { a } from './util.js';", "web/util.ts"),
        ("web/index.ts", "export * from './view';", "web/view/index.tsx"),
        ("web/view/index.tsx", "import d from '../data.json';", "web/data.json"),
        ("web/index.ts", "import type { T } from './types';", "web/types.d.ts"),
        ("web/old.js", "const u = require('./util');", "web/util.ts"),
        ("web/index.ts", "import x from 'react';", ""),
        ("web/index.ts", "import x from './none';", ""),
        ("go/main.go", 'import "example.org/shop/pkg"', "go/pkg/a.go go/pkg/b.go"),
        ("go/pkg/a.go", 'import "example.org/shop"', "go/main.go"),
        ("go/main.go", 'import "fmt"', ""),
        ("crate/src/lib.rs", "use crate::net::tcp::Stream;", "crate/src/net/tcp.rs"),
        ("crate/src/net/tcp.rs", "use super::super::io;", "crate/src/io.rs"),
        ("crate/src/lib.rs", "use self::io::{Read, Write};", "crate/src/io.rs"),
        ("crate/src/lib.rs", "use net::tcp;", "crate/src/net/tcp.rs"),
        ("crate/src/lib.rs", "use std::net;", ""),
        ("java/src/org/x/A.java", "import org.y.C;", "java/src/org/y/C.java"),
        ("java/src/org/y/C.java", "import org.x.*;", "java/src/org/x/A.java java/src/org/x/B.java"),
        ("java/src/org/x/A.java", "import java.util.List;", ""),
        ("c/main.c", '#include "util.h"', "c/util.h"),
        ("c/main.c", "#include <lib/deep.h>", "c/include/lib/deep.h"),
        ("c/main.c", "#include <stdio.h>", ""),
        ("ruby/bin/run.rb", "require_relative '../lib/tool'", "ruby/lib/tool.rb"),
        ("ruby/bin/run.rb", "require 'tool/part'", "ruby/lib/tool/part.rb"),
        ("ruby/bin/run.rb", "require 'json'", ""),
        ("php/index.php", "<?php\nuse App\\Models\\User;", "php/src/Models/User.php"),
        ("php/index.php", "<?php\nuse App\\Models\\{User, Post};", "php/src/Models/User.php php/src/Models/Post.php"),
        ("php/index.php", "<?php\nrequire __DIR__ . '/boot.php';", ""),
        ("php/index.php", "<?php\nrequire_once 'boot.php';", "php/boot.php"),
        ("php/index.php", "<?php\nuse Other\\User;", ""),
        ("sh/run.sh", 'source "$DIR/lib/common.sh"', "sh/lib/common.sh"),
        ("sh/run.sh", ". ./lib/common.sh", "sh/lib/common.sh"),
        ("sh/run.sh", "source /etc/profile", ""),
    ],
)
def test_what_an_import_names(path: str, line: str, expected: str) -> None:
    source = required(path, f"{line}\n")
    found = [each for imported in source.imports for each in resolved(source.language, path, imported, FILES)]
    assert found == expected.split()


def test_a_file_does_not_import_itself() -> None:
    source = required("app/main.py", "import app.main\n")
    assert resolved("python", "app/main.py", source.imports[0], FILES) == ()


def test_languages_without_a_rule_name_nothing() -> None:
    source = required("A.cs", "using App.Models;\n")
    assert resolved("csharp", "A.cs", source.imports[0], FILES) == ()
