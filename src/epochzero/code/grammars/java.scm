[(line_comment) (block_comment)] @comment
[(string_literal) (character_literal)] @string
(import_declaration) @import
[
  (class_declaration) (interface_declaration) (enum_declaration)
  (record_declaration) (annotation_type_declaration)
] @class
[(method_declaration) (constructor_declaration)] @function
(method_invocation name: (identifier) @call)
(object_creation_expression type: (_) @call)
[(throw_statement) (assert_statement)] @raise
