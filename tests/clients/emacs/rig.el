;;; rig.el --- What a scenario needs of a real Emacs without a screen  -*- lexical-binding: t -*-

;; It answers Emacs's own minibuffer by keys, records what was shown, and waits.  The only things that are not as for a
;; user: nobody is idle in a batch Emacs, so idle timers are run here, and keys come from `rig-answer'.

(require 'cl-lib)
(require 'ert-x)
(require 'json)

(defvar rig-workspace nil "Folder of the project.")
(defvar rig-start nil "Starts the client in the current buffer, as a user does.")
(defvar rig-ready nil "Tells whether the server is there.")
(defvar rig-prompts nil "What was asked, newest first: (:prompt TEXT :titles LIST).")
(defvar rig-told nil "What the echo area showed, newest first.")
(defun rig-apply (_prompt titles)
  "The answer \"Apply\" where TITLES have it."
  (car (member "Apply" titles)))
(defvar rig-answer #'rig-apply
  "What is typed at a prompt with these titles, followed by RET; nil presses \\`C-g'.")

(setq last-nonmenu-event ?x ; commands come by keys, not from a mouse
      backtrace-on-error-noninteractive nil) ; a quit in a filter is told, as on a screen, and does not end Emacs

(defvar rig--rested 0 "When idle timers were run last, in seconds.")

(defun rig--read (original prompt collection &rest more)
  "Record PROMPT with the titles of COLLECTION, and let `completing-read' (ORIGINAL, MORE) read keys."
  (let ((titles (all-completions "" collection)))
    (push (list :prompt (substring-no-properties prompt) :titles (vconcat titles)) rig-prompts)
    (ert-simulate-keys (rig--keys (funcall rig-answer prompt titles) (nth 2 more))
      (apply original prompt collection more))))

(defun rig--keys (words initial)
  "Keys that type WORDS and RET into a minibuffer that has the text INITIAL; without words, \\`C-g'."
  (if words
      (append (and initial '(?\C-a ?\C-k))
              (mapcan (lambda (key) (if (memq key '(?\s ??)) (list ?\C-q key) (list key))) words) ; they complete
              '(?\r))
    '(?\C-g)))

(defun rig--confirm (_original prompt)
  "Record PROMPT of `y-or-n-p' and agree."
  (push (list :prompt prompt :titles ["y" "n"]) rig-prompts)
  t)

(defun rig--told (format &rest arguments)
  "Record what `message' shows of FORMAT and ARGUMENTS."
  (when format (push (apply #'format-message format arguments) rig-told)))

(advice-add 'completing-read :around #'rig--read)
(advice-add 'y-or-n-p :around #'rig--confirm)
(advice-add 'message :before #'rig--told)

(defun rig--rest ()
  "Run what waits for an idle user, twice a second."
  (when (> (- (float-time) rig--rested) 0.5)
    (setq rig--rested (float-time))
    (dolist (timer (copy-sequence timer-idle-list))
      (timer-event-handler timer))))

(defun rig-wait (what seconds condition)
  "Wait until CONDITION, named WHAT, is true, at most SECONDS."
  (let ((deadline (+ (float-time) seconds)) found)
    (while (not (setq found (funcall condition)))
      (when (> (float-time) deadline)
        (error "Never came: %s\ntold: %S\nprompts: %S" what rig-told rig-prompts))
      (accept-process-output nil 0.02)
      (rig--rest))
    found))

(defun rig-pass (seconds)
  "Let SECONDS pass."
  (let ((end (+ (float-time) seconds)))
    (rig-wait "the time" (+ seconds 5) (lambda () (> (float-time) end)))))

(defun rig-heard (part)
  "Wait until the echo area has shown PART."
  (rig-wait (concat "told " part) 40
            (lambda () (cl-some (lambda (words) (string-search part words)) rig-told))))

(defun rig-open (name)
  "Visit the file NAME of the workspace with the client started; its buffer."
  (switch-to-buffer (find-file-noselect (expand-file-name name rig-workspace)))
  (funcall rig-start)
  (rig-wait "the server" 40 rig-ready)
  (current-buffer))

(defun rig-text (&optional buffer)
  "The text of BUFFER."
  (with-current-buffer (or buffer (current-buffer))
    (buffer-substring-no-properties (point-min) (point-max))))

(defun rig-has (part)
  "Wait until the current buffer has PART."
  (rig-wait (concat "the text " part) 40 (lambda () (string-search part (rig-text)))))

(defun rig-type (line text)
  "Insert TEXT as a line of its own before LINE, counted from 1, as one change of the user's."
  (save-excursion
    (goto-char (point-min))
    (forward-line (1- line))
    (undo-boundary)
    (insert text "\n")
    (undo-boundary)))

(defun rig-title (titles part)
  "The one of TITLES with PART."
  (cl-find-if (lambda (title) (string-search part title)) titles))

(defun rig-region (first last)
  "Select the lines FIRST to LAST, counted from 1."
  (goto-char (point-min))
  (forward-line (1- first))
  (push-mark (point) t t)
  (forward-line (- (1+ last) first))
  (setq mark-active t transient-mark-mode t))

(defun rig-ask (name &rest given)
  "The result of the command NAME with the properties GIVEN, waited for."
  (let ((params (list :command (concat "codeagent." name) :arguments (if given (vector given) []))))
    (if (featurep 'lsp-mode)
        (lsp-request "workspace/executeCommand" params)
      (jsonrpc-request (eglot-current-server) :workspace/executeCommand params))))

(defun rig--read-plan (file)
  "The property list of the JSON FILE."
  (json-parse-string (with-temp-buffer (insert-file-contents file) (buffer-string)) :object-type 'plist))

(defun rig--configure (plan)
  "Be as the init file of PLAN says, in its workspace."
  (setq rig-workspace (plist-get plan :workspace))
  (load (plist-get plan :configuration) nil t))

(defun rig--play (plan clear)
  "Play the scenario of PLAN and leave a record of it; before, CLEAR what another has left."
  (let* ((record
          (condition-case problem
              (progn
                (when clear (rig--clear plan))
                (list :found (rig--value-of (plist-get plan :scenario))))
            ((error quit) (list :problem (format "%S" problem)))))
         (part (concat (plist-get plan :record) ".part")))
    (with-temp-file part
      (insert (json-encode (append record (list :prompts (vconcat (reverse rig-prompts))
                                                :told (vconcat (reverse rig-told)))))))
    (rename-file part (plist-get plan :record))))

(defun rig--clear (plan)
  "Take what a scenario left from the next, that of PLAN: buffers, session, changes that wait, words."
  (switch-to-buffer (cl-find-if #'buffer-file-name (buffer-list)))
  (rig-wait "the end of all runs" 20 ; changes of one that has not ended wait only afterwards
            (lambda () (not (string-search "\"running\"" (json-encode (rig-ask "runs"))))))
  (mapc (lambda (item)
          (when (equal (plist-get (rig--plist item) :kind) "changes")
            (rig-ask "discard" :runId (plist-get (rig--plist item) :runId))))
        (append (rig-ask "pending") nil))
  (rig-ask "session.new")
  (rig-ask "model.select" :name (plist-get plan :script))
  (dolist (buffer (buffer-list))
    (when (or (buffer-file-name buffer) (equal (buffer-name buffer) "*agent runs*"))
      (with-current-buffer buffer (set-buffer-modified-p nil))
      (kill-buffer buffer)))
  (setq rig-prompts nil rig-told nil rig-answer #'rig-apply))

(defun rig--plist (item)
  "ITEM of an answer as a property list; some clients give tables."
  (json-parse-string (json-encode item) :object-type 'plist))

(defun rig--leave ()
  "Leave Emacs without a word."
  (let ((confirm-kill-processes nil))
    (mapc (lambda (buffer) (with-current-buffer buffer (set-buffer-modified-p nil))) (buffer-list))
    (kill-emacs 0)))

(defun rig-play (plan)
  "Play the scenario of the JSON file PLAN; leave a record of it."
  (let ((plan (rig--read-plan plan)))
    (rig--configure plan)
    (rig--play plan nil)
    (rig--leave)))

(defun rig-play-all (plan)
  "Play one scenario after the other, each as soon as its plan is in the folder of PLAN, until there is a file \"end\"."
  (let* ((plan (rig--read-plan plan)) (folder (plist-get plan :folder)) (number 1) next)
    (rig--configure plan)
    (while (progn
             (setq next (format "%s/%d.json" folder number))
             (rig-wait "the next" 600 (lambda () (or (file-exists-p next) (file-exists-p (concat folder "/end")))))
             (file-exists-p next))
      (rig--play (rig--read-plan next) (> number 1))
      (setq number (1+ number)))
    (rig--leave)))

(defun rig--value-of (file)
  "The value of the last form in FILE."
  (with-temp-buffer
    (insert-file-contents file)
    (eval (read (concat "(progn\n" (buffer-string) "\n)")) t)))

(provide 'rig)
;;; rig.el ends here
