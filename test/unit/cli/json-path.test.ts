import { describe, expect, it } from 'vitest'
import { UsageError } from '../../../src/cli/arguments/parse-arguments.ts'
import {
  customListing,
  readCustomColumns,
  printTemplate,
  printTemplateAsJson,
  readTemplate,
  sortObjects,
} from '../../../src/cli/output/print-template.ts'
import { readJsonPath, selectJsonPath } from '../../../src/cli/output/select-path.ts'

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'web',
    labels: { app: 'a.b', lt: 'a', 'x.io/y': 'z' },
    annotations: { q: "it's", html: '<a&b>' },
  },
  spec: {
    containers: [
      {
        name: 'a',
        image: 'x',
        tty: true,
        ports: [{ containerPort: 80 }, { name: 's', containerPort: 443 }],
      },
      { name: 'b', image: 'yy', tty: false },
      { name: 'c', image: 'z', resources: { limits: { cpu: '100m' } } },
    ],
    nodeName: null,
    num: 1.5,
    list: [1, 2, 3, 4],
    nested: [[1, 2], [3]],
    empty: [],
    emptymap: {},
    emptytext: '',
  },
}

const print = (template: string): string => printTemplate(readTemplate(template), pod)

// What kubectl 1.36 prints of the same object: `kubectl label --local -f FILE lt=a -o jsonpath=…`
describe('a JSONPath template prints what kubectl prints', () => {
  it.each([
    ['{ .metadata.name }', 'web'],
    ['{@.metadata.name}{$.metadata.name}', 'webweb'],
    ['a {.metadata.name} b', 'a web b'],
    ['no braces', 'no braces'],
    ['{.metadata.labels}', '{"app":"a.b","lt":"a","x.io/y":"z"}'],
    ['{.metadata.annotations}', String.raw`{"html":"\u003ca\u0026b\u003e","q":"it's"}`],
    ['{.spec.containers[1]}', '{"image":"yy","name":"b","tty":false}'],
    ['{.spec.containers[-1].name}', 'c'],
    ['{.spec.containers[].name}', 'a'],
    ['{.spec.containers[0:2].name}', 'a b'],
    ['{.spec.containers[:2].name}', 'a b'],
    ['{.spec.containers[1:].name}', 'b c'],
    ['{.spec.containers[-1:].name}', 'c'],
    ['{.spec.containers[-2:-1].name}', 'b'],
    ['{.spec.containers[::2].name}', 'a c'],
    ['{.spec.containers[0:3:2].name}', 'a c'],
    ['{.spec.containers[1:1].name}', ''],
    ['{.spec.containers[0, 2].name}', 'a c'],
    ['{.spec.containers[0:2,2].name}', 'a b c'],
    ["{.spec.containers[0]['name','image']}", 'a x'],
    ["{.spec.containers[*]['name']}", 'a b c'],
    ['{.spec.containers.*.name}', 'a b c'],
    ['{.spec.containers[*].ports[*].containerPort}', '80 443'],
    ['{.spec.containers[?(@.name=="a")].image}', 'x'],
    ["{.spec.containers[?(@.name == 'a')].image}", 'x'],
    ['{.spec.containers[?(@.name!="a")].name}', 'b c'],
    ['{.spec.containers[?(@.name>="b")].name}', 'b c'],
    ['{.spec.containers[?(@.name<"b")].name}', 'a'],
    ['{.spec.containers[?(@.ports)].name}', 'a'],
    ['{.spec.containers[?(@.ports[0].containerPort>79)].name}', 'a'],
    ['{.spec.containers[?(@.tty==true)].name}', 'a'],
    ['{.spec.containers[?(@.tty)].name}', 'a b'],
    ['{.spec.containers[?(@.name==")")].name}', ''],
    ['{.spec.containers[?("a"==@.name)].image}', 'x'],
    ['{.spec.containers[?()].name}', 'a b c'],
    ["{.spec.containers[?(@['name']=='a')].image}", 'x'],
    ['{.spec.containers[*].ports[?(@.name=="s")].containerPort}', '443'],
    [String.raw`{.metadata.labels['x\.io/y']}`, 'z'],
    [String.raw`{.metadata.labels.x\.io/y}`, 'z'],
    ["{.metadata.labels['app','lt']}", 'a.b a'],
    ["{['metadata']['name']}", 'web'],
    ['{.metadata.name.x}{.nothing.at[0].all}{.nothing[*]}{.nothing[?(@.x)]}{.nothing..x}', ''],
    ['{.spec..containerPort}', '80 443'],
    ['{..containerPort}', '80 443'],
    ['{..ports[0].containerPort}', '80'],
    ["{.spec.containers[0]..['name']}", 'a s'],
    ['{.}', ''],
    ['{"text"}{\'text\'}', 'texttext'],
    [String.raw`{"a\tb\nc"}`, 'a\tb\nc'],
    [String.raw`{'it\'s'}{"\"q\""}`, 'it\'s"q"'],
    [String.raw`{"\x41\u00e9\101"}`, 'AéA'],
    ['{"{"}{\'}\'}{.metadata.name}}', '{}web}'],
    ['{range}{.metadata.name}{end}', 'web'],
    [String.raw`{range .spec.containers[*]}{.name}{"\n"}{end}!`, 'a\nb\nc\n!'],
    ['{range .spec.containers[*]}{range .ports[*]}{.containerPort},{end}{.name};{end}', '80,443,a;b;c;'],
    ['{range .spec.containers[*]}{range .ports[*]}{.name}{end}{end}{.metadata.name}', 'sweb'],
    ['{range .nothing[*]}{.x}{end}done', 'done'],
    ['{range .spec.containers[0:2]}[{.name}]{end}', '[a][b]'],
    ['{range .spec.containers[*]}{@.name}{$.name} {end}', 'aa bb cc '],
    ["{range .spec.containers[0]['name','image']}{@}-{end}", 'a-x-'],
    ['{-1} {1.5} {+2} {true}', '-1 1.5 2 true'],
    ['{.metadata.name .kind}', ''],
    ['{.metadata.name "x"}', 'x'],
    ['{.spec.nodeName}{.spec.nodeName.x}{.spec.nodeName[0]}{.spec.nodeName.*}', 'null'],
    ['{.spec.num}', '1.5'],
    ['{.spec.list}', '[1,2,3,4]'],
    ['{.spec.list[1:3]}', '2 3'],
    ['{.spec.nested[*][0]}', '1 3'],
    ['{.spec.nested[*][*]}', '1 2 3'],
    ['{.spec.empty[*]}{.spec.empty[:]}{.spec.empty[0:0]}', ''],
    ['{.spec.emptymap}{.spec.emptymap.x}{.spec.emptytext}', '{}'],
    ['{.spec.list[?(@>2)]}', '3 4'],
    ['{.spec.list[?(@!=3)]}', '1 2 4'],
  ])('%s', (template, printed) => {
    expect(print(template)).toBe(printed)
  })

  it.each([
    ['{.spec.containers[3].name}', 'array index out of bounds: index 3, length 3'],
    ['{.spec.containers[-4].name}', 'array index out of bounds: index -1, length 3'],
    ['{.spec.containers[0:9].name}', 'array index out of bounds: index 8, length 3'],
    ['{.spec.empty[0]}', 'array index out of bounds: index 0, length 0'],
    ['{.spec.containers[2:1].name}', 'starting index 2 is greater than ending index 1'],
    ['{.spec.containers[0:3:0].name}', 'step must be > 0'],
    ['{.spec.containers[?(@.ports[*].containerPort>79)]}', 'can only compare one element at a time'],
    ['{.spec.containers[?(@.tty=="true")].name}', 'incompatible types for comparison'],
    ['{.spec.containers[?(@.name==1)].name}', 'incompatible types for comparison'],
    ['{.spec.containers[?(@.tty<true)].name}', 'invalid type for comparison'],
    ['{.spec.containers[?(@==1)].name}', 'invalid type for comparison'],
    ['{.metadata.name[*]}', 'string is not array or slice'],
    ['{.metadata.labels[*]}', 'object is not array or slice'],
    ['{.metadata[?(@.a)]}', 'object is not array or slice and cannot be filtered'],
    ['{.spec.nodeName[?(@.a)]}', 'null is not array or slice and cannot be filtered'],
  ])('or why it cannot: %s', (template, message) => {
    expect(() => print(template)).toThrow(
      expect.objectContaining({
        code: 'JSONPATH_FAILED',
        message: `error executing jsonpath ${JSON.stringify(template)}: ${message}`,
      }),
    )
  })

  it.each([
    ['{.metadata.name', 'unclosed action'],
    ['{.metadata.name\n}', 'unclosed action'],
    ['{.metadata.name[}', 'unterminated array'],
    ['{.spec.containers[x].name}', 'invalid array index x'],
    ['{.spec.containers[-].name}', 'array index - is not a number'],
    ['{.metadata.labels["app"]}', 'invalid array index "app"'],
    ['{.spec.containers[?(@.name=="a].name}', 'unterminated filter'],
    ['{.spec.containers[?(@.name=="a")}', 'unclosed array expect ]'],
    ['{.spec.containers[?(@.name=~"a")].name}', "unrecognized character in action: U+007E '~'"],
    ['{.spec.containers[?(@.name=="a" && @.tty)]}', "unrecognized character in action: U+0026 '&'"],
    ['{.spec.containers[?(@.name = "a")].name}', 'unrecognized filter operator ='],
    ['{.spec.containers[?(@.name==a)].name}', 'unrecognized identifier a'],
    ['{len(.items)}', 'unrecognized identifier len('],
    ['{.metadata.name foo}', 'unrecognized identifier foo'],
    ['{..*}', "unrecognized character in action: U+002A '*'"],
    ['{....name}', 'invalid multiple recursive descent'],
    [String.raw`{"\q"}`, String.raw`unquote string "\q" error invalid syntax`],
    [String.raw`{"it\'s"}`, String.raw`unquote string "it\'s" error invalid syntax`],
    ['{"unterminated}', 'unterminated quoted string'],
    ['{{.metadata.name}}', "unrecognized character in action: U+007B '{'"],
    ['{.metadata.name,.kind}', "unrecognized character in action: U+002C ','"],
    ['{-}', 'cannot parse number -'],
    ['{1.2.3}', 'cannot parse number 1.2.3'],
    ['{end}', 'not in range, nothing to end'],
    // kubectl goes on after it with what the whole object gives.
    ['{range .spec.containers[*]}{.name}', '{range} without {end}'],
  ])('or why it is none: %s', (template, message) => {
    const wrong = new UsageError(`error parsing jsonpath ${template}, ${message}`)
    expect(() => readTemplate(template)).toThrow(wrong)
  })

  it('as lists of JSON where these are wanted', () => {
    const template = readTemplate('{.spec.containers[0:2].name}{.kind}')
    expect(printTemplateAsJson(template, pod)).toBe('[\n    "a",\n    "b"\n]\n[\n    "Pod"\n]\n')
  })
})

describe('a JSONPath in an argument', () => {
  it.each([
    ['{.metadata.name}', ['web']],
    ['.metadata.name', ['web']],
    ['metadata.name', ['web']],
    ['{$.metadata.name}', ['web']],
    ['{.spec.containers[?(@.tty==true)].name}', ['a']],
    ['.spec.containers[*].name', ['a', 'b', 'c']],
    // kubectl finds nothing: it takes this key for two.
    ["{.metadata.labels['x.io/y']}", ['z']],
    ["{.spec.containers[0]['ports']}", [pod.spec.containers[0]?.ports]],
    ["{['metadata.name']}", ['web']],
    // kubectl takes what it has no element of for there.
    ['{.spec.containers[?(@.ports[5])].name}', []],
    // kubectl leaves out what follows an empty slice.
    ['.spec.nested[*][1:]', [2]],
  ])('%s', (path, found) => {
    expect(selectJsonPath(pod, readJsonPath(path))).toEqual(found)
  })

  it.each(['{.status', '{.a}{.b}', '', '.a{.b}'])('is one path: %j', (path) => {
    expect(() => readJsonPath(path)).toThrow(UsageError)
  })
})

const small = (name: string, ip: string | undefined, restarts: number, cpu = '1') => ({
  kind: 'Pod',
  metadata: { name, labels: { b: 'y', a: 'x' } },
  spec: { cpu },
  status: { podIP: ip, restarts, list: [1, 2], gone: null },
})
const pods = [small('web', '10.0.0.2', 10, '100m'), small('db', undefined, 9, '2')]

describe('columns of one’s own', () => {
  it('are named and filled as kubectl does', () => {
    const { columns, rows } = customListing(
      readCustomColumns(
        'NAME:.metadata.name,IP:.status.podIP,L:.status.list[*],A:.metadata.labels,S:.status.list,N:.status.gone',
      ),
      pods,
    )
    expect(columns.map(({ title }) => title)).toEqual(['NAME', 'IP', 'L', 'A', 'S', 'N'])
    expect(rows).toEqual([
      ['web', '10.0.0.2', '1,2', 'map[a:x b:y]', '[1 2]', '<nil>'],
      ['db', '<none>', '1,2', 'map[a:x b:y]', '[1 2]', '<nil>'],
    ])
  })

  it.each(['NAME', ':.metadata.name', 'NAME:', 'NAME:{.a'])('need a title and a path: %s', (spec) => {
    expect(() => readCustomColumns(spec)).toThrow(UsageError)
  })
})

describe('sorting', () => {
  it.each([
    ['.metadata.name', 'db web'],
    ['.status.restarts', 'db web'],
    ['{.spec.cpu}', 'web db'],
    ['.status.podIP', 'db web'],
  ])('by %s', (path, names) => {
    expect(
      sortObjects(pods, readJsonPath(path), path)
        .map(({ metadata }) => metadata.name)
        .join(' '),
    ).toBe(names)
  })

  it('by what no object has is an error', () => {
    expect(() => sortObjects(pods, readJsonPath('.x'), '.x')).toThrow(
      'couldn\'t find any field with path ".x" in the list of objects',
    )
    expect(sortObjects([], readJsonPath('.x'), '.x')).toEqual([])
  })
})
