// The grammar of RocketMQ's SQL92 expressions, lowest precedence first. Operators of
// one level are taken from left to right. NOT and the signs bind tighter than any
// comparison.

%{

package sql
%}

%union {
	tok  token
	node *node
	list []token
}

%token <tok> NAME STRING INTEGER FRACTION
%token <tok> OR AND NOT IS NULL TRUE FALSE BETWEEN IN CONTAINS STARTSWITH ENDSWITH
%token <tok> '=' '<' '>' NE LE GE '+' '-' '(' ')' ','

%type <node> or and equality comparison unary primary literal
%type <list> strings
%type <tok>  search

%%

expression
	: or { yylex.(*parser).finish($1) }

or
	: and
	| or OR and { $$ = yylex.(*parser).logic(opOr, $2, $1, $3) }

and
	: equality
	| and AND equality { $$ = yylex.(*parser).logic(opAnd, $2, $1, $3) }

equality
	: comparison
	| equality '=' comparison { $$ = yylex.(*parser).equal($2, $1, $3) }
	| equality NE comparison { $$ = yylex.(*parser).negated($2, yylex.(*parser).equal($2, $1, $3)) }
	| equality IS NULL { $$ = yylex.(*parser).isNull($2, $1) }
	| equality IS NOT NULL { $$ = yylex.(*parser).negated($2, yylex.(*parser).isNull($2, $1)) }

comparison
	: unary
	| comparison '>' unary { $$ = yylex.(*parser).order(opGreater, $2, $1, $3) }
	| comparison GE unary { $$ = yylex.(*parser).order(opGreaterEqual, $2, $1, $3) }
	| comparison '<' unary { $$ = yylex.(*parser).order(opLess, $2, $1, $3) }
	| comparison LE unary { $$ = yylex.(*parser).order(opLessEqual, $2, $1, $3) }
	| comparison search STRING { $$ = yylex.(*parser).search($2, $1, $3, false) }
	| comparison NOT search STRING { $$ = yylex.(*parser).search($3, $1, $4, true) }
	| comparison BETWEEN unary AND unary { $$ = yylex.(*parser).between(opBetween, $2, $1, $3, $5) }
	| comparison NOT BETWEEN unary AND unary { $$ = yylex.(*parser).between(opNotBetween, $3, $1, $4, $6) }
	| comparison IN '(' strings ')' { $$ = yylex.(*parser).in($2, $1, $4, false) }
	| comparison NOT IN '(' strings ')' { $$ = yylex.(*parser).in($3, $1, $5, true) }

search
	: CONTAINS
	| STARTSWITH
	| ENDSWITH

strings
	: STRING { $$ = []token{$1} }
	| strings ',' STRING { $$ = append($1, $3) }

unary
	: primary
	| '+' unary { $$ = $2 }
	| '-' unary { $$ = yylex.(*parser).minus($1, $2) }
	| NOT unary { $$ = yylex.(*parser).negated($1, $2) }

primary
	: literal
	| NAME { $$ = yylex.(*parser).property($1) }
	| '(' or ')' { $$ = $2 }

literal
	: STRING { $$ = yylex.(*parser).literal($1) }
	| INTEGER { $$ = yylex.(*parser).integer($1) }
	| FRACTION { $$ = yylex.(*parser).fraction($1) }
	| TRUE { $$ = yylex.(*parser).constant($1, truth(true)) }
	| FALSE { $$ = yylex.(*parser).constant($1, truth(false)) }
	| NULL { $$ = yylex.(*parser).constant($1, value{}) }
