//! What goes wrong: chosen by chance, done, and undone when its time is over.

use crate::crew::{Instance, State, Yard};
use crate::dice::Dice;
use crate::facts::{Facts, Fault, Forgot, Life, Loss, MILLI, Span, Us};
use crate::ground::Ground;
use crate::resource::now_us;
use crate::support::Mode;
use crate::support::wait::ms;
use std::fs;

/// What can go wrong, how often in comparison, and with which stores.
const KINDS: [(&str, u64, &str); 24] = [
    ("kill -9 solocron", 6, "rsl"),
    ("kill -9 solocron and command", 3, "rsl"),
    ("kill -9 command", 2, "rsl"),
    ("TERM", 2, "rsl"),
    ("SIGSTOP solocron, short", 3, "rsl"),
    ("SIGSTOP solocron, long", 2, "rsl"),
    ("SIGSTOP solocron and command, short", 2, "rsl"),
    ("SIGSTOP solocron and command, long", 3, "rsl"),
    ("network of one cut", 3, "r"),
    ("network of one silent", 3, "r"),
    ("network of one, one way", 3, "r"),
    ("network of one slow", 3, "r"),
    ("replies to one lost", 4, "r"),
    ("network of all cut", 2, "r"),
    ("network of all silent", 2, "r"),
    ("network of all slow", 1, "r"),
    ("SIGSTOP Redis", 3, "r"),
    ("Redis restarted, memory kept", 3, "r"),
    ("Redis restarted, memory lost", 2, "r"),
    ("record deleted", 2, "rs"),
    ("FLUSHALL", 2, "rs"),
    ("memory full", 2, "rs"),
    ("kill -9 master", 5, "s"),
    ("SIGSTOP master", 4, "s"),
];
const FAILOVER: &str = "planned failover";

/// What has to be undone.
enum Undo {
    /// the instance of this index is started again
    Start(usize),
    Thaw(usize),
    /// the networks of these instances pass everything
    Pass(Vec<usize>),
    /// the server goes on
    Resume,
    /// the server is started again
    Restart,
    Empty,
    Revive,
}

/// The instances, their store, and what is wrong with them.
pub struct Scene {
    pub crew: Vec<Instance>,
    pub ground: Ground,
    pub yard: Yard,
    pub dice: Dice,
    pub facts: Facts,
    pub failures: Vec<String>,
    /// when, what, and the end of which fault it is
    undo: Vec<(Us, Undo, Option<usize>)>,
    /// indices of instances whose network is not well
    shaky: Vec<usize>,
    /// the store itself is not well
    store_busy: bool,
}

impl Scene {
    pub fn new(crew: Vec<Instance>, ground: Ground, yard: Yard, dice: Dice, facts: Facts) -> Self {
        Self {
            crew,
            ground,
            yard,
            dice,
            facts,
            failures: Vec::new(),
            undo: Vec::new(),
            shaky: Vec::new(),
            store_busy: false,
        }
    }

    pub fn start(&mut self, instance: usize) {
        let luck = self.dice.next();
        self.crew[instance].start(&self.yard, luck);
    }

    /// Undoes what is due, or everything.
    pub fn tend(&mut self, all: bool) {
        loop {
            let now = now_us();
            let due = |at: Us| all || at <= now;
            let Some(index) = self.undo.iter().position(|(at, ..)| due(*at)) else {
                break;
            };
            let (_, undo, fault) = self.undo.swap_remove(index);
            self.put_right(undo);
            if let Some(fault) = fault {
                self.facts.faults[fault].span.to = now_us();
            }
        }
        if let Ground::Watched(failing) = &mut self.ground
            && let Some(loss) = failing.look()
        {
            self.facts.losses.push(loss);
        }
        for index in 0..self.crew.len() {
            if let Some(left) = self.crew[index].has_left(&self.yard) {
                self.note_left(left);
                self.start_later(index);
            }
            if self.crew[index].has_failed() {
                let life = self.crew[index].bury(&self.yard);
                let last = life.lines.last().map(|line| line.text.clone());
                self.failures
                    .push(format!("{} ended by itself: {last:?}", life.label));
                self.facts.lives.push(life);
                self.start(index);
            }
        }
    }

    /// An instance that was told to stop is gone.
    pub fn note_left(&mut self, left: Result<Life, String>) {
        match left {
            Ok(life) => self.facts.lives.push(life),
            Err(text) => self.failures.push(text),
        }
    }

    fn put_right(&mut self, undo: Undo) {
        match undo {
            Undo::Start(index) => self.start(index),
            Undo::Thaw(index) => {
                let freeze = self.crew[index].thaw();
                self.facts.freezes.extend(freeze);
            }
            Undo::Pass(which) => {
                for index in which {
                    self.shaky.retain(|shaky| *shaky != index);
                    if let Some(proxy) = &self.crew[index].proxy {
                        proxy.set(Mode::Pass);
                        proxy.delay(ms(0));
                        proxy.lose_replies("eval", 0, 0);
                    }
                }
            }
            Undo::Resume => {
                self.store_busy = false;
                if let Ground::Single(server) = &self.ground {
                    server.resume();
                }
            }
            Undo::Restart => {
                self.store_busy = false;
                if let Ground::Single(server) = &mut self.ground {
                    server.start_again();
                }
            }
            Undo::Empty => {
                self.store_busy = false;
                let _ = self.ground.fill(false);
            }
            Undo::Revive => {
                if let Ground::Watched(failing) = &mut self.ground {
                    failing.revive();
                }
            }
        }
    }

    /// Lets something go wrong, if it can at the moment.
    pub fn inject(&mut self) {
        let letter = match &self.ground {
            Ground::Single(_) => 'r',
            Ground::Watched(_) => 's',
            Ground::Local(_) => 'l',
        };
        let mut kinds: Vec<(&'static str, u64)> = KINDS
            .iter()
            .filter(|(_, _, stores)| stores.contains(letter))
            .map(|(kind, weight, _)| (*kind, *weight))
            .collect();
        if letter == 's' {
            kinds.push((FAILOVER, 5));
        }
        let total = kinds.iter().map(|(_, weight)| weight).sum::<u64>();
        let mut luck = self.dice.between(1, total);
        for (kind, weight) in kinds {
            if luck <= weight {
                let from = now_us();
                let undos = self.undo.len();
                if let Some((lasts, text)) = self.fault(kind) {
                    if self.undo.len() > undos
                        && let Some((.., fault)) = self.undo.last_mut()
                    {
                        *fault = Some(self.facts.faults.len());
                    }
                    let span = Span {
                        from,
                        to: now_us() + lasts,
                    };
                    self.facts.faults.push(Fault { kind, span, text });
                }
                return;
            }
            luck -= weight;
        }
    }

    /// Does it; how long it lasts, and to whom it was done. None if it cannot be.
    fn fault(&mut self, kind: &'static str) -> Option<(Us, String)> {
        match kind {
            "network of one cut"
            | "network of one silent"
            | "network of one, one way"
            | "network of one slow"
            | "replies to one lost" => {
                let well: Vec<usize> = (0..self.crew.len())
                    .filter(|index| !self.shaky.contains(index))
                    .collect();
                let index = *self.dice.pick(&well)?;
                self.network(kind, vec![index])
            }
            "network of all cut" | "network of all silent" | "network of all slow" => {
                if !self.shaky.is_empty() {
                    return None;
                }
                let all = (0..self.crew.len()).collect();
                self.network(kind, all)
            }
            "SIGSTOP Redis"
            | "Redis restarted, memory kept"
            | "Redis restarted, memory lost"
            | "record deleted"
            | "FLUSHALL"
            | "memory full"
            | "kill -9 master"
            | "SIGSTOP master"
            | FAILOVER => self.store(kind),
            _ => self.process(kind),
        }
    }

    fn process(&mut self, kind: &'static str) -> Option<(Us, String)> {
        let up: Vec<usize> = (0..self.crew.len())
            .filter(|index| matches!(self.crew[*index].state, State::Runs(_)))
            .collect();
        // Whoever runs a command is the more interesting one.
        let mut index = *self.dice.pick(&up)?;
        for _ in 0..6 {
            let busy = self.crew[index]
                .running()
                .is_some_and(|run| !run.started().is_empty());
            if busy {
                break;
            }
            index = *self.dice.pick(&up)?;
        }
        let (label, ttl) = (self.crew[index].label.clone(), self.crew[index].job.ttl);
        let whole = kind.contains("and command");
        let micros = |span: Us| u64::try_from(span).expect("a span");
        match kind {
            "kill -9 solocron" | "kill -9 solocron and command" => {
                let (life, freeze) = self.crew[index].kill(&self.yard, whole);
                self.facts.lives.push(life);
                self.facts.freezes.extend(freeze);
                Some((self.start_later(index), label))
            }
            "TERM" => {
                self.crew[index].tell_to_stop();
                Some((0, label))
            }
            "kill -9 command" => {
                self.crew[index].kill_command();
                Some((0, label))
            }
            _ => {
                let (shortest, longest) = if kind.contains("short") {
                    (50 * MILLI, ttl / 4)
                } else {
                    (ttl / 2, ttl * 2)
                };
                let lasts = self.dice.between(micros(shortest), micros(longest));
                let lasts = Us::try_from(lasts).expect("a span");
                self.crew[index].freeze(whole);
                self.undo.push((now_us() + lasts, Undo::Thaw(index), None));
                Some((lasts, label))
            }
        }
    }

    fn start_later(&mut self, index: usize) -> Us {
        let after = self.span(100, 4_000);
        self.undo.push((now_us() + after, Undo::Start(index), None));
        after
    }

    /// A span between these milliseconds.
    fn span(&mut self, shortest: u64, longest: u64) -> Us {
        Us::try_from(self.dice.between(shortest, longest)).expect("a span") * MILLI
    }

    fn network(&mut self, kind: &'static str, which: Vec<usize>) -> Option<(Us, String)> {
        let lasts = match self.dice.between(0, 9) {
            0 => self.span(9_000, 13_000),
            1..=4 => self.span(1_000, 5_000),
            _ => self.span(100, 1_000),
        };
        let slow = self.dice.between(20, 400);
        let replies = usize::try_from(self.dice.between(1, 3)).expect("a small number");
        for index in &which {
            let proxy = self.crew[*index].proxy.as_ref()?;
            match kind {
                "network of one cut" | "network of all cut" => {
                    proxy.set(Mode::Refuse);
                    proxy.cut();
                }
                "network of one silent" | "network of all silent" => proxy.set(Mode::Stall),
                "network of one, one way" => proxy.set(Mode::StallReplies),
                "network of one slow" | "network of all slow" => proxy.delay(ms(slow)),
                _ => proxy.lose_replies("eval", 0, replies),
            }
        }
        let text = match which[..] {
            [index] => self.crew[index].label.clone(),
            _ => "all".to_owned(),
        };
        self.shaky.extend(&which);
        self.undo.push((now_us() + lasts, Undo::Pass(which), None));
        Some((lasts, text))
    }

    fn store(&mut self, kind: &'static str) -> Option<(Us, String)> {
        if self.store_busy {
            return None;
        }
        if let Ground::Watched(failing) = &self.ground
            && !failing.is_calm()
        {
            return None;
        }
        let lasts = match self.dice.between(0, 9) {
            0 => self.span(9_000, 13_000),
            1..=4 => self.span(1_000, 5_000),
            _ => self.span(100, 1_000),
        };
        let names: Vec<&'static str> = self.facts.jobs.iter().map(|job| job.name).collect();
        let one = *self.dice.pick(&names)?;
        let mut note = String::new();
        match (kind, &mut self.ground) {
            ("record deleted" | "FLUSHALL", ground) => {
                let only = (kind == "record deleted").then_some(one);
                self.facts.losses.push(ground.wipe(only)?);
                only.unwrap_or("all").clone_into(&mut note);
                return Some((0, note));
            }
            ("memory full", ground) => {
                ground.fill(true)?;
                self.undo.push((now_us() + lasts, Undo::Empty, None));
            }
            ("SIGSTOP Redis", Ground::Single(server)) => {
                server.pause();
                self.undo.push((now_us() + lasts, Undo::Resume, None));
            }
            ("Redis restarted, memory kept", Ground::Single(server)) => {
                server.kill();
                self.undo.push((now_us() + lasts, Undo::Restart, None));
            }
            ("Redis restarted, memory lost", Ground::Single(server)) => {
                let from = now_us();
                server.kill();
                // One or the other, as the version has it.
                let socket = server.socket();
                let _ = fs::remove_dir_all(socket.with_file_name("appendonlydir"));
                let _ = fs::remove_file(socket.with_file_name("appendonly.aof"));
                self.facts.losses.push(Loss {
                    job: None,
                    forgot: Forgot::All,
                    span: Span { from, to: now_us() },
                });
                self.undo.push((now_us() + lasts, Undo::Restart, None));
            }
            ("kill -9 master", Ground::Watched(failing)) => {
                failing.kill_master();
                self.undo.push((now_us() + lasts, Undo::Revive, None));
                return Some((lasts, note));
            }
            ("SIGSTOP master", Ground::Watched(failing)) => {
                failing.freeze_master();
                self.undo.push((now_us() + lasts, Undo::Revive, None));
                return Some((lasts, note));
            }
            (FAILOVER, Ground::Watched(failing)) => {
                return failing.fail_over().then_some((0, note));
            }
            _ => return None,
        }
        self.store_busy = true;
        Some((lasts, note))
    }
}
