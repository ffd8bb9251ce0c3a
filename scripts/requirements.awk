# What scripts/requirements is made of: reads docs/requirements.tsv, the reasons, expected.tsv, then
# tests and scenarios; prints the page, and writes what is wrong to the file `complaints`.

function complain(text)
{
    print text > complaints
    wrong = 1
}

# ---- ids in a comment --------------------------------------------------------------------------

# The ids that `text` names, separated by spaces; those of wrong peers have a "!" before them.
function ids_of(text, at,    result, prefix, number, last, mark)
{
    result = ""
    gsub(/[ \t\n]+/, " ", text)
    while (match(text, /R-[A-Z]+-[0-9][0-9]*|[Ww]rong peers?:|\.( |$)/)) {
        prefix = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (prefix !~ /^R-/) {
            mark = prefix ~ /eer/ ? "!" : ""
            continue
        }
        number = prefix
        sub(/^.*-/, "", number)
        sub(/[0-9]+$/, "", prefix)
        result = result " " mark known(prefix number, at)
        while (match(text, /^( to |,? and |, )(R-[A-Z]+)?-[0-9]+/)) {
            last = substr(text, 1, RLENGTH)
            if (last ~ /R-/ && (last !~ /^ to / || index(last, prefix) == 0))
                break
            text = substr(text, RLENGTH + 1)
            if (last !~ /^ to /)
                number = -1 # not a range
            sub(/^.*-/, "", last)
            if (number == -1)
                number = last - 1
            while (++number <= last + 0)
                result = result " " mark known(sprintf("%s%02d", prefix, number), at)
            number = last
        }
    }
    return result
}

function known(id, at)
{
    if (id in level)
        return id
    complain(at ": " id " is no requirement")
    return ""
}

# ---- who claims them ---------------------------------------------------------------------------

# `who` shows these ids, in what the page calls `where`.
function claim(ids, where, who,    list, count, i, id, kind)
{
    count = split(ids, list, " ")
    for (i = 1; i <= count; i++) {
        id = list[i]
        kind = "test"
        if (sub(/^!/, "", id))
            kind = "peer"
        add(kind, id, where, who)
        if (kind == "peer")
            add("test", id, where, who)
    }
}

# In `shown`: where and who, in the order in which they came, each once.
function add(kind, id, where, who,    key)
{
    key = kind SUBSEP id
    if ((key, where, who) in seen)
        return
    seen[key, where, who] = 1
    if (!((key, where) in shown)) {
        places[key] = places[key] (key in places && places[key] != "" ? "\t" : "") where
        shown[key, where] = who
    } else if (who != "") {
        shown[key, where] = shown[key, where] (shown[key, where] != "" ? "; " : "") who
    }
}

# ---- C files -----------------------------------------------------------------------------------

function begin_c()
{
    split("", claims)      # of a definition
    split("", claimed_at)
    split("", uses)        # its identifiers
    split("", definitions)
    definitions_count = depth = in_comment = any_code = 0
    comment = pending = whole_file = head = name = all_code = ""
}

# A comment has ended.
function end_comment(    ids)
{
    ids = ids_of(comment, FILENAME ":" FNR)
    comment = ""
    if (ids == "")
        return
    if (!any_code)
        whole_file = whole_file ids
    else if (name != "" && (depth > 0 || head != ""))
        claim_for(name, ids)
    else
        pending = pending ids
}

function claim_for(definition, ids)
{
    claims[definition] = claims[definition] ids
    if (!(definition in claimed_at))
        claimed_at[definition] = FNR
}

# A definition begins: its name is before the first "(", or else before "[", "=" or the end.
function name_of(text)
{
    gsub(/_Alignas *\([^)]*\)/, "", text)
    if (text ~ /^ *# *define/) {
        sub(/^ *# *define +/, "", text)
        sub(/[^A-Za-z0-9_].*$/, "", text)
        return text
    }
    sub(/[=({[;].*$/, "", text)
    sub(/ *$/, "", text)
    sub(/^.*[^A-Za-z0-9_]/, "", text)
    return text
}

# Code of one line, without comments and what strings hold.
function take_code(text,    braces, i, character)
{
    if (text ~ /^[ \t]*$/)
        return
    any_code = 1
    if (depth == 0 && head == "") {
        name = name_of(text)
        if (name != "" && !(name in definitions)) {
            definitions[name] = 1
            order[++definitions_count] = name
        }
        if (pending != "" && text !~ /^#include/) {
            claim_for(name, pending)
            pending = ""
        }
    }
    head = head text
    uses[name] = uses[name] " " text
    braces = text
    gsub(/[^{};]/, "", braces)
    for (i = 1; i <= length(braces); i++) {
        character = substr(braces, i, 1)
        depth += character == "{" ? 1 : character == "}" ? -1 : 0
    }
    if (depth == 0 && (text ~ /[;}][ \t]*$/ || (head ~ /^#/ && text !~ /\\$/)))
        head = ""
}

function take_c_line(line,    code, at, what, length_of)
{
    code = ""
    if (line ~ /^[ \t]*$/ && pending != "" && depth == 0) {
        complain(FILENAME ":" FNR - 1 ": a comment names requirements, but no code follows it")
        pending = ""
    }
    while (line != "") {
        if (in_comment) {
            at = index(line, "*/")
            what = at ? substr(line, 1, at - 1) : line
            sub(/^[ \t]*\*/, "", what)
            comment = comment " " what
            line = at ? substr(line, at + 2) : ""
            in_comment = !at
            if (at)
                end_comment()
        } else if (match(line, /"([^"\\]|\\.)*"|'([^'\\]|\\.)+'|\/\*|\/\//)) {
            what = substr(line, RSTART, RLENGTH)
            length_of = RSTART + RLENGTH
            code = code substr(line, 1, RSTART - 1)
            line = substr(line, length_of)
            if (what == "/*") {
                if (code !~ /^[ \t]*$/) { # the code before it comes first
                    take_code(code)
                    all_code = all_code code
                    code = ""
                }
                in_comment = 1
            } else if (what == "//") {
                take_code(code)
                all_code = all_code code
                code = ""
                comment = line
                line = ""
                end_comment()
            } else {
                all_code = all_code code what
                take_code(code "\"\"")
                code = ""
            }
        } else {
            code = code line
            line = ""
        }
    }
    take_code(code)
    all_code = all_code code " "
}

# The tests of a file are the {"NAME", FUNCTION} in it; a test shows what is claimed for all that
# it uses in the file.
function end_c(where,    tests, test, function_name, i, text, reached, todo, words, count, used)
{
    tests = 0
    while (match(all_code, /\{"([^"\\]|\\.)*", *[a-z_0-9]+ *\}/)) {
        test = substr(all_code, RSTART + 2, RLENGTH - 3)
        all_code = substr(all_code, RSTART + RLENGTH)
        function_name = test
        sub(/^.*", */, "", function_name)
        sub(/ *$/, "", function_name)
        sub(/", *[a-z_0-9]+ *$/, "", test)
        if (!(function_name in definitions))
            continue
        tests++
        split("", reached)
        split(function_name, todo)
        count = 1
        reached[function_name] = 1
        while (count > 0) {
            text = todo[count--]
            used[text] = 1
            claim(claims[text], where, test)
            text = uses[text]
            while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
                words = substr(text, RSTART, RLENGTH)
                text = substr(text, RSTART + RLENGTH)
                if (words in definitions && !(words in reached)) {
                    reached[words] = 1
                    todo[++count] = words
                }
            }
        }
    }
    if (tests > 0)
        claim(whole_file, where, "")
    else if (whole_file != "")
        complain(c_file ": names requirements, but has no tests")
    for (i = 1; i <= definitions_count; i++)
        if (claims[order[i]] != "" && !(order[i] in used))
            complain(c_file ":" claimed_at[order[i]] ": no test uses " order[i] \
                     ", which names requirements")
}

# ---- the files ---------------------------------------------------------------------------------

# What the page calls a file of tests/ or scenarios/.
function place_of(file)
{
    sub(/^tests\//, "", file)
    return "`" file "`"
}

function finish_file()
{
    if (c_file != "")
        end_c(place_of(c_file))
    else if (text_file != "")
        claim(ids_of(text_comment, text_file), place_of(text_file), "")
    c_file = text_file = text_comment = ""
}

FNR == 1 {
    finish_file()
    patch = ""
    if (FILENAME ~ /\.[ch]$/) {
        c_file = FILENAME
        begin_c()
    } else if (FILENAME ~ /\.patch$/) {
        patch = FILENAME
        sub(/^.*\//, "", patch)
        sub(/\.patch$/, "", patch)
    } else if (FILENAME ~ /\.(sh|bash|yaml)$/) {
        text_file = FILENAME
    }
}

FILENAME == "docs/requirements.tsv" {
    if (FNR == 1)
        next
    split($0, column, "\t")
    ids[++ids_count] = column[1]
    section[column[1]] = column[2]
    level[column[1]] = column[3]
    binds[column[1]] = column[4]
    says[column[1]] = column[5]
    next
}

FILENAME == reasons_file {
    if ($0 ~ /^#/ || $0 == "")
        next
    split($0, column, "\t")
    if (!(column[1] in level))
        complain(FILENAME ":" FNR ": " column[1] " is no requirement")
    else if (column[2] == "")
        complain(FILENAME ":" FNR ": no reason is given for " column[1])
    else
        reason[column[1]] = column[2]
    if (++reasons_count == 13)
        complain(FILENAME ": more than 12 reasons")
    next
}

FILENAME == expected_file {
    if ($0 ~ /^#/ || $0 == "")
        next
    split($0, column, "\t")
    if (column[2] != "equivalent" && column[1] != "none") {
        found_in[column[1]] = found_in[column[1]] " " column[3]
        mutant_text[column[1]] = mutant_text[column[1]] "; " column[5]
    }
    next
}

patch != "" {
    if ($0 ~ /^---/)
        patch = ""
    else if ($0 ~ /^#/)
        mutant_text[patch] = mutant_text[patch] " " substr($0, 2)
    if (!(patch in is_mutant) && patch != "") {
        is_mutant[patch] = 1
        mutants[++mutants_count] = patch
    }
    next
}

c_file != "" { take_c_line($0) }

text_file ~ /\.yaml$/ && /(^|[ \t])#/ {
    sub(/^[^#]*#/, "")
    text_comment = text_comment " " $0
}

text_file !~ /\.yaml$/ && text_file != "" && /^[ \t]*#/ {
    sub(/^[ \t]*#/, "")
    text_comment = text_comment " " $0
}

# A mutant that is found shows what it names, in the scenarios where it is.
function take_mutant(mutant,    list, count, i, scenarios, scenarios_count, j)
{
    count = split(ids_of(mutant_text[mutant], "mutant " mutant), list, " ")
    scenarios_count = split(found_in[mutant], scenarios, " ")
    for (i = 1; i <= count && scenarios_count > 0; i++) {
        add("mutant", list[i], "`" mutant "`", "")
        for (j = 1; j <= scenarios_count; j++)
            add("test", list[i], "`scenarios/" scenarios[j] "`", "")
    }
}

# ---- the page ----------------------------------------------------------------------------------

function short(text,    cut)
{
    if (length(text) > 150) {
        cut = substr(text, 1, 145)
        sub(/[ ,;:]+[^ ]*$/, "", cut)
        text = cut " ..."
    }
    gsub(/\|/, "\\|", text)
    return text
}

function show(kind, id,    list, count, i, key, text)
{
    key = kind SUBSEP id
    if (!(key in places))
        return ""
    count = split(places[key], list, "\t")
    for (i = 1; i <= count; i++) {
        text = text (i > 1 ? "<br>" : "") list[i]
        if (shown[key, list[i]] != "")
            text = text ": " shown[key, list[i]]
    }
    gsub(/\|/, "\\|", text)
    return text
}

function is_shown(id)
{
    return ("test" SUBSEP id) in places
}

function is_must(id)
{
    return level[id] ~ /^MUST/
}

function breaks(id,    peers)
{
    peers = show("peer", id)
    if (peers != "")
        peers = "wrong peer: " peers
    return show("mutant", id) (peers != "" && show("mutant", id) != "" ? "<br>" : "") peers
}

function print_counts(    i, id, total, covered, reasoned, levels, levels_count)
{
    for (i = 1; i <= ids_count; i++) {
        id = ids[i]
        if (!(level[id] in total))
            levels[++levels_count] = level[id]
        total[level[id]]++
        covered[level[id]] += is_shown(id)
        reasoned[level[id]] += !is_shown(id) && id in reason
    }
    print "| level | requirements | shown | reason given | open |"
    print "|---|--:|--:|--:|--:|"
    for (i = 1; i <= levels_count; i++) {
        id = levels[i]
        printf "| %s | %d | %d | %d | %d |\n", id, total[id], covered[id], reasoned[id],
            total[id] - covered[id] - reasoned[id]
        total["all"] += total[id]
        covered["all"] += covered[id]
        reasoned["all"] += reasoned[id]
    }
    printf "| all | %d | %d | %d | %d |\n", total["all"], covered["all"], reasoned["all"],
        total["all"] - covered["all"] - reasoned["all"]
}

function print_sections(    i, id, before, prefix)
{
    for (i = 1; i <= ids_count; i++) {
        id = ids[i]
        prefix = id
        sub(/-[0-9]+$/, "", prefix)
        if (prefix != before) {
            print "\n## " prefix "\n"
            print "| id | level | section | requirement | shown by | found when broken by |"
            print "|---|---|---|---|---|---|"
        }
        before = prefix
        printf "| %s | %s | %s | %s | %s | %s |\n", id, level[id], section[id], short(says[id]),
            is_shown(id) ? show("test", id) : id in reason ? "reason: " reason[id] : "**open**",
            breaks(id)
    }
}

function print_lists(    i, id, any)
{
    print "\n## MUST and MUST NOT that no mutant and no wrong peer puts to the test\n"
    for (i = 1; i <= ids_count; i++) {
        id = ids[i]
        if (is_must(id) && is_shown(id) && breaks(id) == "")
            any = any (any != "" ? ", " : "") id
    }
    print any != "" ? any : "None."
    print "\n## Open\n"
    any = 0
    for (i = 1; i <= ids_count; i++) {
        id = ids[i]
        if (is_shown(id) || id in reason)
            continue
        print "- " id " (" level[id] "): " short(says[id])
        any = 1
        if (strict)
            complain(id " (" level[id] ") is open: no test shows it, and no reason is given")
    }
    if (!any)
        print "None."
}

END {
    finish_file()
    for (i = 1; i <= mutants_count; i++)
        take_mutant(mutants[i])
    for (i = 1; i <= ids_count; i++)
        if (ids[i] in reason && is_shown(ids[i]))
            complain(reasons_file ": a reason is given for " ids[i] ", which has a test")
    print "# The draft's requirements, and what shows them\n"
    print "Written by `scripts/requirements`; not to be edited. Its sources are"
    print "`docs/requirements.tsv` (what is required), `docs/requirements-reasons.tsv` (why no test can"
    print "show some of it), `tests/mutants/expected.tsv` (which scenarios find a mutant), and the"
    print "comments of tests, scenarios and mutants.\n"
    print "The level says how the draft puts a requirement:\n"
    print "| level | is |"
    print "|---|---|"
    print "| MUST, MUST NOT, SHOULD, MAY | the draft has the keyword |"
    print "| PROSE | the draft says it in plain words |"
    print "| MUST-PROSE, MUST NOT-PROSE | plain words, but they leave no choice: treated as the keyword |"
    print "| IMPLIED | not said, but what is said does not work otherwise |"
    print "| INFO | the draft informs; nothing is required by itself |\n"
    print "A row has the `id`, the `level`, the `section` of the draft (numbers are inferred from the"
    print "order of its headings) and the `requirement` in our words. \"Shown by\" names a file of"
    print "`tests/` and its tests, or a scenario, that fails when the code breaks the requirement; or the"
    print "reason why none can; or it is open. \"Found when broken by\" names the mutants of"
    print "`tests/mutants/` that break it and are found, and as wrong peers tests in which the other side"
    print "breaks it. A path that begins with `scenarios/` counts from the top of the source tree, every"
    print "other one from `tests/`. In the count, \"shown\" requirements have a test or scenario, \"reason"
    print "given\" those that have only a reason.\n"
    print_counts()
    print_sections()
    print_lists()
    exit wrong
}
