; Beyond c.scm: classes, templates and namespaces of C++.

(class_specifier name: (_) body: (_)) @class
(namespace_definition name: (_)) @module_
(alias_declaration) @type
(concept_definition) @type
(template_declaration) @wrapper
(declaration declarator: (reference_declarator (function_declarator))) @function
(field_declaration declarator: (function_declarator)) @function
(field_declaration declarator: (pointer_declarator declarator: (function_declarator))) @function
(field_declaration declarator: (reference_declarator (function_declarator))) @function
(field_declaration declarator: (field_identifier)) @variable
(namespace_definition body: (declaration_list (declaration declarator: (init_declarator)) @variable))

(namespace_identifier) @use
(call_expression function: (qualified_identifier name: (identifier) @call))
(call_expression function: (template_function name: (identifier) @call))
(call_expression function: (qualified_identifier name: (template_function name: (identifier) @call)))
(call_expression function: (field_expression field: (template_method name: (field_identifier) @call)))
(new_expression type: (type_identifier) @call)
(parameter_declaration declarator: (reference_declarator (identifier) @bound))
