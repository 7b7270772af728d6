; Ruby: what is defined, used and imported. Captures: see parse.py.

(class) @class
(module) @module_
(singleton_class) @scope
(method) @function
(singleton_method) @function
(alias) @function
(program (assignment left: (constant)) @constant)
(body_statement (assignment left: (constant)) @constant)
(comment) @above

((call !receiver method: (identifier) @_how arguments: (argument_list . (string (string_content) @module))) @import
  (#any-of? @_how "require" "require_relative" "load"))

(identifier) @use
(constant) @use
(call method: [(identifier) (constant)] @call)
(method_parameters (identifier) @bound)
(block_parameters (identifier) @bound)
(optional_parameter name: (identifier) @bound)
(keyword_parameter name: (identifier) @bound)
