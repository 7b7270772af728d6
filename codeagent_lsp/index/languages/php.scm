; PHP: what is defined, used and imported. Captures: see parse.py.

(class_declaration) @class
(trait_declaration) @class
(interface_declaration) @interface
(enum_declaration) @enum
(enum_case) @constant
(namespace_definition name: (_) body: (_)) @module_
(function_definition) @function
(method_declaration) @function
(const_element) @constant
(property_declaration) @variable
(comment) @above
(attribute_list) @above

(namespace_use_declaration) @import
(namespace_use_declaration (namespace_use_clause . [(name) (qualified_name)] @module))
(namespace_use_declaration (namespace_name) @module)
(namespace_use_group (namespace_use_clause . [(name) (qualified_name)] @taken))
(require_expression (string (string_content) @module)) @import
(require_once_expression (string (string_content) @module)) @import
(include_expression (string (string_content) @module)) @import
(include_once_expression (string (string_content) @module)) @import

(name) @use
(function_call_expression function: [(name) @call (qualified_name (name) @call)])
(member_call_expression name: (name) @call)
(nullsafe_member_call_expression name: (name) @call)
(scoped_call_expression name: (name) @call)
(object_creation_expression [(name) @call (qualified_name (name) @call)])
(variable_name (name) @bound)
