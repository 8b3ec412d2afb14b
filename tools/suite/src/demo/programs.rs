// SPDX-License-Identifier: MIT OR Apache-2.0
//! The demo's programs and their data.

pub struct Program {
    pub name: &'static str,
    pub argv: &'static [&'static str],
}

/// The directory of the demo. It is in memory, since otherwise 9p would be measured.
pub const DIRECTORY: &str = "/dev/shm/demo";

/// Fills DIRECTORY: a tree of 4,000 files, a file of 64 MB, JSON, SQL.
pub const PREPARE: &str = r#"
mkdir -p /dev/shm/demo && cd /dev/shm/demo
perl -e '
    srand 1;
    my @words = map { join "", map { chr(97 + rand 26) } 1 .. 3 + rand 6 } 1 .. 500;
    mkdir "tree";
    for my $d (1 .. 80) {
        mkdir "tree/$d"; mkdir "tree/$d/deep";
        for my $f (1 .. 50) {
            my $path = "tree/$d/" . ($f % 3 ? "" : "deep/") . "file$f.txt";
            open my $out, ">", $path or die;
            print $out join(" ", map { $words[rand @words] } 1 .. 20), "\n" for 1 .. 4;
            close $out;
        }
    }
    symlink "../1/file1.txt", "tree/2/link";
    open my $json, ">", "data.json";
    print $json "[", join(",", map {
        sprintf q({"id":%d,"name":"%s","value":%.3f,"tags":["%s","\u00e9"],"next":null}),
            $_, $words[rand @words], rand 1000, $words[rand @words] } 1 .. 2000), "]";
'
yes 'all work and no play makes a dull process' | head -c 67108864 >big
cat >convert.py <<'END'
import json, subprocess, sys
with open("data.json") as f:
    data = json.load(f)
data.sort(key=lambda entry: (entry["name"], entry["id"]))
text = json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False)
assert json.loads(text) == data
done = subprocess.run(["wc", "-l"], input=text.encode(), capture_output=True, check=True)
print(text)
print(done.stdout.decode().strip(), "lines, says a child process", file=sys.stderr)
sys.exit(3)
END
cat >fill.sql <<'END'
.open --new rows.sqlite
CREATE TABLE rows(id INTEGER PRIMARY KEY, name TEXT, value REAL);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
INSERT INTO rows SELECT i, printf('name %05d', i * 7919 % 10007), i * 1.5 FROM n;
COMMIT;
CREATE INDEX by_name ON rows(name);
SELECT count(*), sum(value), min(name), max(name) FROM rows;
SELECT * FROM rows WHERE name LIKE 'name 01%' ORDER BY name LIMIT 20;
UPDATE rows SET value = -value WHERE id % 2;
SELECT sum(value) FROM rows;
PRAGMA integrity_check;
END
"#;

pub const PROGRAMS: &[Program] = &[
    Program { name: "ls -lR, 4,000 files", argv: &["ls", "-lR", "tree"] },
    Program { name: "sha256sum, 64 MB", argv: &["sha256sum", "big"] },
    Program {
        name: "bash: tar | gzip | wc",
        argv: &["bash", "-c", "set -o pipefail; tar cf - tree | gzip -6 | wc -c; exit 4"],
    },
    Program { name: "python3: JSON, subprocess", argv: &["python3", "convert.py"] },
    Program { name: "sqlite3, 10,000 rows", argv: &["sqlite3", "-batch", "", ".read fill.sql"] },
    Program {
        name: "perl one-liner",
        argv: &[
            "perl",
            "-ne",
            "$n{$_}++ for split; END { print \"$_ $n{$_}\\n\" for (sort { $n{$b} <=> $n{$a} || \
             $a cmp $b } keys %n)[0..9] }",
            "tree/1/file1.txt",
            "tree/2/file2.txt",
            "data.json",
        ],
    },
    Program {
        name: "awk one-liner",
        argv: &[
            "awk",
            "{ for (i = 1; i <= NF; i++) n += length($i) } END { print NR, n; print \"end\" | \
             \"cat 1>&2\" }",
            "tree/3/file1.txt",
            "tree/4/file2.txt",
        ],
    },
    Program { name: "grep -r", argv: &["grep", "-rnE", "[aeiou]{3}", "tree"] },
    Program {
        name: "static busybox",
        argv: &[
            "busybox",
            "sh",
            "-c",
            "busybox find tree -name '*1.txt' | busybox sort | busybox md5sum; busybox false",
        ],
    },
    Program { name: "a missing file", argv: &["cat", "big", "no-such-file"] },
];
