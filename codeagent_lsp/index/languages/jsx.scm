; Elements, beyond javascript.scm or typescript.scm.

(jsx_opening_element name: (identifier) @call)
(jsx_self_closing_element name: (identifier) @call)
